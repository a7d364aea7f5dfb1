
# What the script above uses of the package bash-completion, for shells without it.
# A package that is loaded later replaces these functions.

declare -F _get_comp_words_by_ref >/dev/null || _get_comp_words_by_ref() { # -n CHARACTERS cur prev words cword
    # bash also splits words at = and :, between which there are no blanks.
    local i rest=${COMP_LINE:0:COMP_POINT} text
    words=()
    for ((i = 0; i <= COMP_CWORD; i++)); do
        text=${rest#"${rest%%[![:blank:]]*}"}
        if ((i == 0)) || [[ $text != "$rest" ]]; then
            words+=("")
        fi
        rest=${text#"${COMP_WORDS[i]}"}
        if ((i == COMP_CWORD)); then
            words[${#words[@]} - 1]+=$text # up to the cursor
        else
            words[${#words[@]} - 1]+=${COMP_WORDS[i]}
        fi
    done
    cword=$((${#words[@]} - 1))
    cur=${words[cword]}
    prev=${words[cword - (cword > 0)]}
    words+=("${COMP_WORDS[@]:COMP_CWORD + 1}")
}

declare -F _filedir >/dev/null || _filedir() { # -d: directories; EXTENSIONS: files with one of these, a|b
    local name only=(-f)
    case ${1-} in
    -d) only=(-d) ;;
    ?*) only=(-f -X "!*.@($1)") ;;
    esac
    [[ $(type -t compopt) != builtin ]] || compopt -o filenames
    while IFS= read -r name; do
        COMPREPLY+=("$name")
    done < <(compgen "${only[@]}" -- "$cur"; [[ ${only[0]} == -d || -z ${1-} ]] || compgen -d -- "$cur")
}
