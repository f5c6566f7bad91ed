#!/usr/bin/env bash
# Makes the environments that the benchmarks need beside adjudge's own, under venvs/ (git-ignored).
# Takes names, to make only those: ./setup.sh server
#
#   server     uvloop and orjson, so that the mock costs as little as it can; without it, it is slower
#   autoevals  the library adjudge is compared with
#   jsonschema the library that validating outputs is compared with
set -euo pipefail
cd "$(dirname "$0")"
python="${PYTHON:-python3}"

make_env() {
  local name=$1
  shift
  echo "$name: $*"
  [ -d "venvs/$name" ] || "$python" -m venv "venvs/$name"
  "venvs/$name/bin/python" -m pip install -q --disable-pip-version-check "$@"
}

[ "$#" -gt 0 ] || set -- server autoevals jsonschema
for name in "$@"; do
  case $name in
    server) make_env server uvloop orjson ;;
    autoevals) make_env autoevals autoevals==0.4.1 openai==3.52.0 ;;
    jsonschema) make_env jsonschema jsonschema==4.26.0 ;;
    *) echo "no environment is called $name; there are server, autoevals and jsonschema" >&2 && exit 2 ;;
  esac
done
