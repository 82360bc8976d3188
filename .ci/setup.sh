# Set-up shared by ./demo, ./bench, ./check and ./package; sourced, never run. Idempotent; says nothing when there is nothing to do.
# After `scalide_setup COMMAND` the variable BUILD (the build folder) is set and the tree is configured. CMake fetches Halide.
# SCALIDE_WITH_PYTHON, when set, asks for the Python package too, SCALIDE_WITH_DOCS for the site of the documentation.
# SCALIDE_BUILD_DIR chooses another build folder than ./build.

ROOT=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
BUILD=${SCALIDE_BUILD_DIR:-$ROOT/build}
NVDISASM_VERSION=$(sed -n 's/^set(SCALIDE_NVDISASM_VERSION \([0-9.]*\)).*/\1/p' "$ROOT/CMakeLists.txt")
PTXAS_VERSION=$(sed -n 's/^set(SCALIDE_PTXAS_VERSION \([0-9.]*\)).*/\1/p' "$ROOT/CMakeLists.txt")
JOBS=$(nproc)

# The Debian packages that each command needs, on a system that has only the essential packages.
# tests/fresh compares them with what CMake looks for, with the apt lines of the pages, and with what the commands use in fresh systems.
declare -A PACKAGES
libraries="libyaml-cpp-dev libfmt-dev libcli11-dev nlohmann-json3-dev libxxhash-dev libdtl-dev libjemalloc-dev"
PACKAGES[build]="g++ cmake ninja-build python3 python3-pip $libraries"
PACKAGES[project]="g++ cmake make libyaml-cpp-dev libfmt-dev" # a CMake project with the default generator, which finds the C++ package
PACKAGES[pip]="g++ python3 python3-dev python3-venv $libraries" # gets CMake and Ninja from PyPI if the system has none
PACKAGES[demo]="${PACKAGES[build]} make" # after it, the projects of the pages work too
PACKAGES[bench]="${PACKAGES[build]} python3-dev python3-venv libgtest-dev"
PACKAGES[package_deb]="${PACKAGES[build]} dpkg-dev file"
PACKAGES[package_tar]="${PACKAGES[build]}"
PACKAGES[package_wheel]="${PACKAGES[build]} python3-dev python3-venv"
PACKAGES[check]="${PACKAGES[build]} python3-dev python3-venv libgtest-dev clang-format universal-ctags git pkg-config dpkg-dev file pocl-opencl-icd ocl-icd-libopencl1 rustc gfortran openmpi-bin mpich graphviz chromium"
PACKAGES[check_slow]="${PACKAGES[check]} qemu-user mmdebstrap"
PACKAGES[check_fuzz]="${PACKAGES[check]} clang-19 libclang-rt-19-dev llvm-19" # clang 14 does not read the ranges of this libstdc++

fail() { printf 'scalide: %s\n' "$*" >&2; exit 1; }

# watch LABEL LOG: prints every second (into a file: every 15) how long LABEL has been running, the last count `[3/20]` of its log, and about
# how long the rest will take.
watch() {
    local start=$SECONDS pause=15 count text
    [ -t 1 ] && pause=1
    while sleep $pause >/dev/null; do # a sleep that outlives its parent must not hold the script's output open
        text="$((SECONDS - start)) s so far"
        read -ra count < <(grep -o '^\[[0-9]*/[0-9]*\]' "$2" | tail -n 1 | tr '[/]' '   ') || true
        if [ "${count[0]:-0}" -gt 0 ]; then
            text="[${count[0]}/${count[1]}] $text, about $(((SECONDS - start) * (count[1] - count[0]) / count[0] / 60)) min left"
        fi
        if [ -t 1 ]; then printf '\r\e[K%s: %s' "$1" "$text"; else echo "  $1: $text"; fi
    done
}

# run_logged LABEL LOG COMMAND...: runs COMMAND with its output in a log, and prints one line with the time that it took.
# If it fails, prints the end of the log and what to do.
run_logged() {
    local label=$1 log=$BUILD/log/$2.log start=$SECONDS status=0; shift 2
    : >"$log"
    watch "$label" "$log" &
    local watching=$!
    "$@" >"$log" 2>&1 || status=$?
    { kill $watching; wait $watching || true; } 2>/dev/null # bash reports the end of a killed job on stderr
    if [ -t 1 ]; then printf '\r\e[K'; fi
    [ $status -eq 0 ] && { echo "$label: $((SECONDS - start)) s"; return; }
    tail -n 25 "$log" >&2
    fail "$label failed; the whole output is in $log"
}

# apt_install: installs the packages in `missing`. apt-get update ends with status 0 without a network, so its warnings explain a failure here.
apt_install() {
    "${become[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${missing[@]}" ||
        { grep '^[WE]:' "$BUILD/log/apt-update.log"; return 1; }
}

# install_packages COMMAND...: the packages of these commands in the table above.
install_packages() {
    local wanted missing=() name command
    wanted=$(for command; do printf '%s\n' ${PACKAGES[$command]}; done | awk '!seen[$0]++')
    command -v dpkg-query >/dev/null || fail "cannot install packages: this system is not Debian or Ubuntu, it has no dpkg. Install these packages yourself, then run cmake as in docs/start/install.md: ${wanted//$'\n'/ }"
    for name in $wanted; do
        [ "$(dpkg-query -W -f='${db:Status-Status}' "$name" 2>/dev/null)" = installed ] || missing+=("$name")
    done
    [ ${#missing[@]} -eq 0 ] && return
    local become=()
    if [ "$(id -u)" -ne 0 ]; then
        sudo -n true 2>/dev/null || fail "packages are missing, and this user cannot install them. Run: sudo apt-get update && sudo apt-get install ${missing[*]}"
        become=(sudo)
    fi
    echo "packages that are missing: ${missing[*]}"
    run_logged "apt-get update (needs a network)" apt-update "${become[@]}" apt-get update -qq
    run_logged "apt-get install" apt-install apt_install
}

# locked COMMAND...: runs COMMAND when no other one uses the build folder. pip builds there too.
locked() { flock --close "$BUILD/lock" "$@"; }

# build_targets TARGET...
build_targets() { locked cmake --build "$BUILD" -j "$JOBS" --target "$@"; }

# can_build: whether the build folder is configured, with programs that are still there. pip may have had them in a temporary environment.
can_build() {
    local name program
    [ -e "$BUILD/build.ninja" ] && [ -e "$BUILD/CMakeCache.txt" ] || return 1
    for name in CMAKE_COMMAND CMAKE_MAKE_PROGRAM; do
        program=$(sed -n "s/^$name:[A-Z]*=//p" "$BUILD/CMakeCache.txt")
        [ -x "$program" ] || return 1
    done
}

# install_wheel NAME VERSION FOLDER: unpacks a wheel of PyPI.
install_wheel() {
    local part=$3.part
    rm -rf "$part" && mkdir -p "$part"
    run_logged "fetching the PyPI wheel $1==$2 (needs a network)" "$1-fetch" \
        python3 -m pip download --disable-pip-version-check --no-deps --only-binary :all: -d "$part" "$1==$2"
    run_logged "unpacking the wheel $1" "$1-unpack" python3 -m zipfile -e "$part"/*.whl "$part"
    rm -f "$part"/*.whl
    rm -rf "$3" && mv "$part" "$3"
}

# scalide_cuda_tools: sets CUDA_HOME to a folder with bin/ptxas and bin/fatbinary that know all cards: a toolkit's, or fetched.
scalide_cuda_tools() {
    local folder fetched=$BUILD/cuda-$PTXAS_VERSION/nvidia/cu13/bin
    local IFS=:
    for folder in "${CUDA_HOME:-}/bin" $PATH "$fetched"; do
        if [ -x "$folder/ptxas" ] && [ -x "$folder/fatbinary" ] && "$folder/ptxas" --help | grep sm_120 >/dev/null; then # not -q: the pipe must be read to its end
            export CUDA_HOME=${folder%/*}
            return
        fi
    done
    install_wheel nvidia-cuda-nvcc "$PTXAS_VERSION" "$BUILD/cuda-$PTXAS_VERSION"
    chmod +x "$fetched"/ptxas "$fetched"/fatbinary
    export CUDA_HOME=${fetched%/*}
}

# scalide_nvdisasm: fetches the program that tests read the machine code of CUDA kernels with.
scalide_nvdisasm() {
    local folder=$BUILD/nvdisasm-$NVDISASM_VERSION
    [ -x "$folder/nvidia/cu13/bin/nvdisasm" ] && return
    install_wheel nvidia-cuda-nvdisasm "$NVDISASM_VERSION" "$folder"
    chmod +x "$folder/nvidia/cu13/bin/nvdisasm"
}

# install_python GROUP NAME: a virtual environment $BUILD/NAME with the packages of this group of pyproject.toml.
install_python() {
    local folder=$BUILD/$2
    [ "$folder/installed" -nt "$ROOT/pyproject.toml" ] && return
    run_logged "making the Python environment $2" "$2-venv" python3 -m venv "$folder"
    run_logged "upgrading pip in $2 (needs a network)" "$2-pip" "$folder/bin/python" -m pip install --disable-pip-version-check "pip>=25.1"
    run_logged "installing the Python packages of the tests in $2 (needs a network)" "$2-packages" "$folder/bin/python" -m pip install --group "$ROOT/pyproject.toml:$1"
    touch "$folder/installed"
}

# scalide_python: what the Python package and its tests need. Sets SCALIDE_CMAKE_OPTIONS.
scalide_python() {
    install_python check venv
    SCALIDE_CMAKE_OPTIONS+=(-DSCALIDE_BUILD_PYTHON=ON "-DPython_EXECUTABLE=$BUILD/venv/bin/python")
    local minor; minor=$("$BUILD/venv/bin/python" -c 'import sys; print(sys.version_info.minor)')
    if [ "$minor" -ge 12 ]; then
        install_python check-new-jax venv-new-jax
        SCALIDE_CMAKE_OPTIONS+=("-DSCALIDE_NEW_JAX_PYTHON=$BUILD/venv-new-jax/bin/python")
    fi
    [ "$minor" -le 13 ] || return 0 # the old versions of JAX have no wheels for later Pythons
    install_python check-old-jax venv-old-jax
    local include; include=$("$BUILD/venv-old-jax/bin/python" -c 'import pathlib, jaxlib; print(pathlib.Path(jaxlib.__file__).parent / "include")')
    SCALIDE_CMAKE_OPTIONS+=("-DSCALIDE_XLA_INCLUDE=$include" "-DSCALIDE_OLD_JAX_PYTHON=$BUILD/venv-old-jax/bin/python")
}

# scalide_docs: what the site of the documentation needs. Sets SCALIDE_CMAKE_OPTIONS.
scalide_docs() {
    install_python docs venv-docs
    SCALIDE_CMAKE_OPTIONS+=("-DSCALIDE_DOCS_PYTHON=$BUILD/venv-docs/bin/python")
}

# scalide_setup COMMAND...: what these commands of the table PACKAGES need.
scalide_setup() {
    mkdir -p "$BUILD/log" || fail "cannot write to $BUILD. Set SCALIDE_BUILD_DIR to a folder that can be written"
    local free; free=$(df -Pm "$BUILD" | awk 'NR == 2 {print $4}')
    [ "$free" -ge 4000 ] || fail "$BUILD has $free MiB free, 4000 MiB are needed. Free some room or set SCALIDE_BUILD_DIR"
    install_packages "$@"
    if [ -n "${SCALIDE_WITH_PYTHON:-}" ]; then scalide_python; fi
    if [ -n "${SCALIDE_WITH_DOCS:-}" ]; then scalide_docs; fi
    local options=(-DSCALIDE_FETCH_HALIDE=ON "${SCALIDE_CMAKE_OPTIONS[@]}") file=$BUILD/options
    # CMake keeps the options of earlier commands, so ./demo after ./check changes nothing.
    if ! can_build || [ "$ROOT/CMakeLists.txt" -nt "$BUILD/build.ninja" ] || [ ! -e "$file" ] ||
        printf '%s\n' "${options[@]}" | grep -vxFf "$file" >/dev/null; then
        run_logged "configuring with CMake (the first time needs a network)" configure locked cmake -S "$ROOT" -B "$BUILD" -G Ninja "${options[@]}"
        { if [ -e "$file" ]; then grep -vFf <(printf '%s\n' "${options[@]%%=*}=") "$file" || true; fi; printf '%s\n' "${options[@]}"; } >"$file.part"
        mv "$file.part" "$file"
    fi
}
