"""Settings in effect: those that the agent was started with, and what a reload has changed of them since."""

from __future__ import annotations

from pathlib import Path

from supervisor.config.resolution.config_file import load_settings
from supervisor.config.settings import Settings, SettingsError
from supervisor.config.settings_reload import changed_settings, diff_reload


class Configuration:
    """Owns the settings. Another object looks up a setting here each time, or is told of a reload."""

    def __init__(self, settings: Settings, path: Path | None) -> None:
        """``path`` is that of the file; None where all settings are defaults."""
        self._settings = settings
        self.path = path

    @property
    def settings(self) -> Settings:
        """The newest: not to be kept."""
        return self._settings

    def reload(self) -> tuple[str, ...]:
        """Read the file again and take over what can change.

        Returns a line for each setting that changed, and for each that needs a restart.

        Raises:
            SettingsError: the file is wrong, or there is none. The settings stay as they were.
        """
        if self.path is None:
            raise SettingsError("", "", "the agent was started without a configuration file: there is nothing to read")
        before = self._settings
        self._settings, fixed = diff_reload(before, load_settings(self.path))
        return (*changed_settings(before, self._settings), *(f"{name}: needs a restart" for name in fixed))
