#!/usr/bin/env bash
# Makes the environments that the benchmarks need beside adjudge's own, under venvs/ (git-ignored) or $BENCH_VENVS.
# Takes names, to make only those: ./setup.sh server
#
#   server     uvloop and orjson, so that the mock costs as little as it can; without it, it is slower
#   autoevals  the library adjudge is compared with
#   jsonschema the library that validating outputs is compared with
#   guardrails what research/broken_replies.py compares with, besides peers
#   promptfoo22  what research/seven_tools.py compares with, besides those; it brings Node 22
#   peers      every library that research/peers.py compares with: some gigabytes
set -euo pipefail
bench="$(cd "$(dirname "$0")" && pwd)"
venvs="${BENCH_VENVS:-$bench/venvs}"
python="${PYTHON:-python3}"
peers="autoevals openevals pydantic_evals phoenix instructor litellm inspect_ai deepeval ragas verdict mlflow promptfoo"

make_env() {
  local name=$1
  shift
  echo "$name: $*"
  [ -d "$venvs/$name" ] || "$python" -m venv "$venvs/$name"
  "$venvs/$name/bin/python" -m pip install -q --disable-pip-version-check "$@"
}

[ "$#" -gt 0 ] || set -- server autoevals jsonschema
# shellcheck disable=SC2086  # a list of names
for name in ${*/peers/$peers}; do
  case $name in
    server) make_env server uvloop orjson ;;
    jsonschema) make_env jsonschema jsonschema==4.26.0 ;;
    autoevals) make_env autoevals autoevals==0.4.1 openai==3.52.0 ;;
    guardrails) make_env guardrails "openai-guardrails[benchmark]==0.3.6" ;;
    openevals) make_env openevals openevals==0.2.2 langchain-openai==1.7.3 openai==3.52.0 ;;
    pydantic_evals) make_env pydantic_evals pydantic-evals==2.62.0 "pydantic-ai-slim[openai]==2.62.0" ;;
    phoenix) make_env phoenix arize-phoenix-evals==3.9.4 openai==3.52.0 ;;
    instructor) make_env instructor instructor==1.17.0 ;;
    litellm) make_env litellm litellm==1.106.2 ;;
    inspect_ai) make_env inspect_ai inspect-ai==0.3.285 openai==3.52.0 ;;
    deepeval) make_env deepeval deepeval==4.3.1 openai==3.52.0 ;;
    ragas) make_env ragas ragas==0.4.3 langchain-community==0.3.31 ;;
    verdict) make_env verdict verdict==0.2.7 ;;
    mlflow) make_env mlflow mlflow==3.17.2 litellm==1.106.2 ;;
    promptfoo)  # a program of npm, beside a Python that drives it; later ones want Node 22
      make_env promptfoo pip
      npm install --prefix "$venvs/promptfoo" --no-audit --no-fund --loglevel=error promptfoo@0.121.20
      ;;
    promptfoo22)  # a later one, with its Node
      make_env promptfoo22 pip
      npm install --prefix "$venvs/promptfoo22" --no-audit --no-fund --loglevel=error promptfoo@0.123.1 node@22.23.3
      ;;
    *) echo "no environment is called $name; there are server, jsonschema and $peers" >&2 && exit 2 ;;
  esac
done
