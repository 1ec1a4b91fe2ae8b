# SPDX-License-Identifier: BSD-2-Clause
# bash completion of inlay(1): commands and options come from the program itself, so they are always those it has.
_inlay()
{
	local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]} word cmd=

	for word in "${COMP_WORDS[@]:1:COMP_CWORD-1}"; do
		case $word in
		runqslower|run|check|dump|bench|conformance-plugin) cmd=$word; break ;;
		esac
	done
	COMPREPLY=()
	case $prev in
	--engine) COMPREPLY=($(compgen -W 'user kernel' -- "$cur")); return ;;
	--storage) COMPREPLY=($(compgen -W 'task hash hash-noprealloc' -- "$cur")); return ;;
	--storage-impl) COMPREPLY=($(compgen -W 'jit slots linux-inlined linux-slowpath linux-outlined' -- "$cur")); return ;;
	--metric) COMPREPLY=($(compgen -W 'auto wakeup waking' -- "$cur")); return ;;
	--attach) COMPREPLY=($(compgen -W 'auto tp_btf raw_tp' -- "$cur")); return ;;
	dump) COMPREPLY=($(compgen -W 'bytecode xlated lowered jited' -- "$cur")); return ;;
	-p|--pid|-t|--tid) COMPREPLY=($(compgen -W "$(cd /proc && echo [0-9]*)" -- "$cur")); return ;;
	esac
	if [[ $cur == -* || -z $cmd ]]; then
		COMPREPLY=($(compgen -W "$(inlay --words $cmd 2>/dev/null)" -- "$cur"))
	else
		COMPREPLY=($(compgen -f -- "$cur"))
	fi
}
complete -o filenames -F _inlay inlay
