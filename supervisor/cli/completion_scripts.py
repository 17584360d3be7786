"""Scripts that shells read to complete the command: it asks the command itself for each word."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

_BASH: Final = """\
_rootlet_completion() {
    local IFS=$'\\n' response completion type value
    response=$(
        env COMP_WORDS="${COMP_WORDS[*]}" COMP_CWORD=$COMP_CWORD _ROOTLET_COMPLETE=bash_complete "$1" 2>/dev/null
    )
    COMPREPLY=()
    for completion in $response; do
        IFS=',' read -r type value <<<"$completion"
        case $type in
            dir) COMPREPLY=(); compopt -o dirnames ;;
            file) COMPREPLY=(); compopt -o default ;;
            plain)
                COMPREPLY+=("$value")
                [[ $value == *[=:.] ]] && compopt -o nospace
                ;;
        esac
    done
}
complete -o nosort -F _rootlet_completion rootlet
"""
_ZSH: Final = """\
#compdef rootlet
_rootlet_completion() {
    local -a completions completions_with_descriptions response
    (( ! $+commands[rootlet] )) && return 1
    export COMP_WORDS="${words[*]}" COMP_CWORD=$((CURRENT-1))
    response=("${(@f)$(_ROOTLET_COMPLETE=zsh_complete rootlet 2>/dev/null)}")
    unset COMP_WORDS COMP_CWORD
    for type key descr in ${response}; do
        if [[ "$type" == "plain" ]]; then
            if [[ "$descr" == "_" ]]; then
                completions+=("$key")
            else
                completions_with_descriptions+=("$key":"$descr")
            fi
        elif [[ "$type" == "dir" ]]; then _path_files -/
        elif [[ "$type" == "file" ]]; then _path_files -f
        fi
    done
    [ -n "$completions_with_descriptions" ] && _describe -V unsorted completions_with_descriptions -U
    [ -n "$completions" ] && compadd -U -V unsorted -a completions
}
if [[ $zsh_eval_context[-1] == loadautofunc ]]; then
    _rootlet_completion "$@"
else
    compdef _rootlet_completion rootlet
fi
"""
_FISH: Final = """\
function _rootlet_completion
    set -lx COMP_WORDS (commandline -cp)
    set -lx COMP_CWORD (commandline -t)
    set -l response (env _ROOTLET_COMPLETE=fish_complete rootlet 2>/dev/null)
    for completion in $response
        set -l metadata (string split "," $completion)
        if test $metadata[1] = "dir"
            __fish_complete_directories $metadata[2]
        else if test $metadata[1] = "file"
            __fish_complete_path $metadata[2]
        else if test $metadata[1] = "plain"
            echo $metadata[2]
        end
    end
end
complete --no-files --command rootlet --arguments "(_rootlet_completion)"
"""


class Script(NamedTuple):
    """A shell's script."""

    text: str
    installed: str
    """Where below ``share`` that shell looks for it."""


SCRIPTS: Final[Mapping[str, Script]] = {
    "bash": Script(_BASH, "bash-completion/completions/rootlet"),
    "zsh": Script(_ZSH, "zsh/site-functions/_rootlet"),
    "fish": Script(_FISH, "fish/vendor_completions.d/rootlet.fish"),
}
