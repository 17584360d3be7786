"""From the configuration file to settings as they hold on this host: rules between them, and the children's part."""
