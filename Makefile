# One non-recursive makefile.  New files under src/ and tests/ are found by name: no edit needed.
# Lines that begin with "#:" are what `make help` shows.
#: make                $(B)/libcairn.a, $(B)/cairn.pc and $(B)/cairn
#: make run            installs what is missing, builds, fetches the default model, answers PROMPT="…"
#: make test           installs what is missing, builds and runs every test program
#: make install        the program, the library and its headers below PREFIX (/usr/local), staged in DESTDIR
#: make uninstall      removes what install put there
#: make examples       the programs under examples/, linked as a user would
#: make check          format, layers, banned calls: in a minute, before every commit
#: make test-asan      the tests under the address and undefined-behaviour sanitizers
#: make test-tsan      those of threads under the thread sanitizer
#: make test-crash     writers of the disk cache, and servers, killed CRASH_ROUNDS times, at any moment
#: make test-programs  random programs on every layout and codec of the cache: PROGRAMS_SEED, PROGRAMS_COUNT
#: make test-sim       the scheduler with SIM_REQUESTS random requests on a simulated clock
#: make test-memory    servers under hostile load keep to their budget: MEMORY_SECONDS
#: make test-company   many requests at once have the bits of each alone: COMPANY_SECONDS, COMPANY_MODELS="…"
#: make test-soak      a server under load for SOAK_SECONDS holds no more in the end: memory, descriptors, threads
#: make test-web       the page in a headless Chromium, if one is installed, axe-core too; screenshots in $(B)/web
#: make test-openapi   the server asked by schemathesis, by docs/openapi.json, for OPENAPI_EXAMPLES a route
#: make test-clients   SDKs, litellm, langchain-openai, pydantic-ai and two coding agents against the server
#: make fuzz           each fuzz target for FUZZ_SECONDS; fuzz-long: 20 minutes each
#: make check-all      clang-tidy, include-what-you-use and cppcheck over the whole tree
#: make check-text     templates and tokenizers beside the references, at length
#: make check-shapes   random shapes of every family beside the reference: SHAPES_ARGS="--seed 3 llama"
#: make kern-bench     speed of the kernels; make kern-tests: their test programs
#: make bench          speeds beside llama.cpp and the machine's limits; make bench-load: the server under load
#: make lab            what the numerics contract costs: its kernels beside ones that are free of it (AVX2)
#: make budgets        renews tools/budgets.txt, the instructions of the hot paths
#: make compile_commands.json    for editors
#: make clean          removes every build folder
#: Knobs: B=folder  CC=gcc|clang  SAN=address,undefined|thread  TESTS="tests/unit/base/test_map.c …"
#:        V=1 shows whole commands

# Every core, unless -j says otherwise; a make below us shares its parent's.
ifeq ($(MAKELEVEL),0)
MAKEFLAGS += -j$(shell nproc)
endif

B ?= build
SAN ?=
ifeq ($(origin CC),default)
CC := gcc
endif
CXX := $(if $(findstring clang,$(CC)),clang++,g++)
AR := ar
OBJCOPY := objcopy
MACHINE := $(firstword $(subst -, ,$(shell $(CC) -dumpmachine)))

# --- sources ---
not_here := $(if $(filter x86_64,$(MACHINE)),,src/backend/cpu/kern/x86/% src/sample/pass_avx% tests/kern/emulated_%) \
            $(if $(filter aarch64,$(MACHINE)),,src/backend/cpu/kern/arm/%)
src_all := $(sort $(shell find src -name '*.c' -o -name '*.cc'))
src_all := $(filter-out $(not_here),$(src_all))
src_cli := $(filter src/cli/%,$(src_all))
src_lib := $(filter-out src/cli/%,$(src_all))
obj = $(patsubst %,$(B)/%.o,$(basename $(1)))
obj_lib := $(call obj,$(src_lib)) $(B)/src/serve/web_table.o
obj_cli := $(call obj,$(src_cli))

# A test program is a file under tests/ with a main; other files there help the programs of their
# folder, and those directly in tests/ help all.  tests/fuzz holds libFuzzer targets, fuzz_*.c.
test_c := $(filter-out $(not_here),$(sort $(shell find tests -name '*.c' -not -path 'tests/fuzz/*')))
test_main := $(if $(test_c),$(shell grep -lE '^int main\b' $(test_c)))
# Programs that Python tests and .ci/run start and that are no tests themselves.
test_side := $(filter tests/serve/fake_server.c tests/text/tok_driver.c \
                      tests/golden/print_programs.c tests/golden/hot_paths.c \
                      tests/kern/print_bits.c,$(test_main))
test_main := $(filter-out $(test_side),$(test_main))
test_help := $(filter-out $(test_main) $(test_side),$(test_c))
TESTS ?= $(test_main)
test_bin := $(patsubst %.c,$(B)/%,$(TESTS))
fuzz_all := $(sort $(wildcard tests/fuzz/*.c))
fuzz_main := $(filter tests/fuzz/fuzz_%,$(fuzz_all))
fuzz_help := $(filter-out $(fuzz_main),$(fuzz_all)) $(filter-out $(test_main),$(wildcard tests/*.c))
fuzz_bin := $(patsubst %.c,$(B)/%,$(fuzz_main))
help_of = $(call obj,$(foreach h,$(test_help),$(if $(filter $(dir $(h)),$(dir $(1)) tests/),$(h))))

# --- flags ---
WARN := -Wall -Wextra -Werror -Wshadow -Wstrict-prototypes -Wmissing-prototypes -Wpointer-arith \
        -Wvla -Wundef -Wformat=2 -Wwrite-strings -Wcast-qual -Wdouble-promotion \
        -Wimplicit-fallthrough -Wswitch-enum
WARN_CONV := -Wconversion -Wsign-conversion
DEFS := -D_GNU_SOURCE -Iinclude -Isrc
ifeq ($(SAN),)
OPT := -O2
OPT_KERN := -O3
HARD := -fstack-protector-strong -D_FORTIFY_SOURCE=2
else
# Lines but no variables: following those doubles the time that gcc takes for kernels.
OPT := -O1 -g1 -fno-omit-frame-pointer
# Fuzzing is for parsers; clang takes minutes to instrument the kernels.
OPT_KERN := $(OPT) $(if $(findstring fuzzer,$(SAN)),-fno-sanitize=all)
HARD := -fsanitize=$(SAN) -fno-sanitize-recover=all
# gcc's flow analysis of instrumented code sees faults that are not there.
HARD += $(if $(findstring clang,$(CC)),,-Wno-format-truncation -Wno-maybe-uninitialized \
                                        -Wno-stringop-overflow -Wno-array-bounds)
# A C link lacks what clang's check of C++ objects' types needs.
HARD += $(if $(findstring clang,$(CC)),$(if $(findstring undefined,$(SAN)),-fno-sanitize=vptr))
endif
# Contraction off: an fma only where the numerics contract writes one.
COMMON := $(DEFS) -ffp-contract=off -fvisibility=hidden -fPIC -pthread $(HARD) -MMD -MP
CFLAGS_ALL = -std=c17 $(WARN) $(COMMON) $(CFLAGS)
CXXFLAGS_ALL = -std=c++17 -Wall -Wextra -Werror $(COMMON) $(CXXFLAGS)

# ISA flags follow file names; every other file is built for the baseline.
isa_avx2 := -mavx2 -mfma -mf16c
isa_avxvnni := -mavxvnni $(isa_avx2)
isa_avx512 := -mavx512f -mavx512bw -mavx512vl -mavx512dq $(isa_avx2)
isa = $(if $(filter %_avx2.c,$(1)),$(isa_avx2))$(if $(filter %_avx512.c,$(1)),$(isa_avx512)) \
      $(if $(filter %_avxvnni.c,$(1)),$(isa_avxvnni)) \
      $(if $(filter %_avx512vnni.c,$(1)),$(isa_avx512) -mavx512vnni) \
      $(if $(filter %_amx.c,$(1)),$(isa_avx512) -mavx512vnni -mamx-tile -mamx-int8) \
      $(if $(filter %_dotprod.c,$(1)),-march=armv8.2-a+dotprod) \
      $(if $(filter %_i8mm.c,$(1)),-march=armv8.2-a+dotprod+i8mm)
opt = $(if $(filter src/backend/cpu/% src/sample/% lab/%,$(1)),$(OPT_KERN),$(OPT)) \
      $(if $(filter tests/kern/emulated_%,$(1)),-O0 -U_FORTIFY_SOURCE)
conv = $(if $(filter src/backend/cpu/kern/% tests/% lab/%,$(1)),,$(WARN_CONV))

# --- libraries ---
LIBS := -lsimdjson -lstdc++ -lxxhash -lonig -lutf8proc -lcurl -lzip -lssl -lcrypto -lpthread -lm
LIBS_CLI := -ledit
LIBS_TEST := -lcmocka
# BARE=1: no library but C's, so that another machine's compiler suffices for the tests of the kernels
# (tests/bare stands for cmocka): make BARE=1 B=build-arm64 CC=aarch64-linux-gnu-gcc kern-tests
ifneq ($(BARE),)
obj_lib := $(filter $(B)/src/tensor/% $(B)/src/backend/cpu/% $(addprefix $(B)/src/base/,alloc.o arena.o \
    buf.o cgroup.o clock.o cpulist.o diag.o far.o file.o fmath.o half.o machine.o nodes.o num.o proc.o rng.o status.o str.o thread.o utf8.o workers.o),$(obj_lib))
LIBS := -lpthread -lm
LIBS_TEST :=
COMMON += -Itests/bare
test_help := $(filter-out tests/reply_record.c,$(test_help)) # of text
endif
LINK = $(CC) $(HARD) -pthread -Wl,--as-needed $(LDFLAGS)

# Commands are shown short, unless V=1.
V ?= 0
say = $(if $(filter 0,$(V)),@printf '  %-4s %s\n' '$(1)' '$@';)

# --- targets ---
.PHONY: all help install uninstall print-libs examples run bench bench-load kern-bench lab kern-tests check-text check-shapes test test-build test-side test-asan test-tsan test-crash test-programs test-sim test-company test-memory test-soak test-web test-openapi test-clients fuzz fuzz-long fuzz-build check check-all budgets clean FORCE
.SECONDARY:
.DELETE_ON_ERROR:
all: $(B)/libcairn.a $(B)/cairn.pc $(B)/cairn
help:
	@sed -n 's/^#: //p' Makefile

# Everything, plain: what tests and the program link.
$(B)/internal.a: $(obj_lib)
	@rm -f $@
	$(call say,AR)$(AR) rcsT $@ $^

# What users link: one object in which only cairn_* is visible.
$(B)/libcairn.o: $(obj_lib)
	$(call say,LD)ld -r --force-group-allocation -o $@ $^
	@$(OBJCOPY) -w --keep-global-symbol='cairn_*' $@
$(B)/libcairn.a: $(B)/libcairn.o
	@rm -f $@
	$(call say,AR)$(AR) rcs $@ $<

$(B)/cairn: $(obj_cli) $(B)/internal.a
	$(call say,LINK)$(LINK) -o $@ $^ $(LIBS) $(LIBS_CLI)

$(B)/%.o: %.c $(B)/flags
	@mkdir -p $(@D)
	$(call say,CC)$(CC) $(CFLAGS_ALL) $(call opt,$<) $(call conv,$<) $(call isa,$<) \
	    $(if $(filter tests/% bench/%,$<),-Itests) $(if $(filter lab/%,$<),-Ilab) -c -o $@ $<
$(B)/%.o: %.cc $(B)/flags
	@mkdir -p $(@D)
	$(call say,CXX)$(CXX) $(CXXFLAGS_ALL) $(OPT) -c -o $@ $<

# The page's files become a table of bytes; the program that writes it runs here, whatever we build for.
web_files := $(sort $(wildcard src/serve/web/*))
$(B)/embed: tools/embed.c
	@mkdir -p $(@D)
	$(call say,CC)cc -std=c17 -O1 -Wall -Wextra -Werror -o $@ $<
$(B)/src/serve/web_table.c: $(B)/embed $(web_files)
	@mkdir -p $(@D)
	$(call say,GEN)$< $@ $(web_files)
$(B)/src/serve/web_table.o: $(B)/src/serve/web_table.c $(B)/flags
	$(call say,CC)$(CC) $(CFLAGS_ALL) $(OPT) -c -o $@ $<

# Objects depend on the flags that made them, so that a folder never mixes two builds.
$(B)/flags: FORCE
	@mkdir -p $(B)
	@echo '$(CC) $(CFLAGS_ALL) $(OPT) $(OPT_KERN) $(LDFLAGS)' | cmp -s - $@ || \
	    echo '$(CC) $(CFLAGS_ALL) $(OPT) $(OPT_KERN) $(LDFLAGS)' > $@

.SECONDEXPANSION:
$(B)/tests/%: $(B)/tests/%.o $$(call help_of,tests/%.c) $(B)/internal.a
	$(call say,LINK)$(LINK) -o $@ $^ $(LIBS) $(LIBS_TEST)

$(B)/tests/sim/test_sched: $(B)/tests/unit/engine/sim_model.o $(B)/tests/unit/engine/watch.o
$(B)/bench/bench_engine: $(B)/tests/unit/engine/sim_model.o

# How to link libcairn.a, for pkg-config; the library is static, so all that it needs is in Libs.
# Two arguments: the folder above include/, the library's.
pc = printf '%s\n' 'prefix=$(1)' 'libdir=$(2)' 'Name: cairn' \
	    'Description: local AI inference' 'Cflags: -I$${prefix}/include' \
	    'Version: $(shell sed -n 's/.*return "\([0-9.]*\)";.*/\1/p' src/base/status.c)' \
	    'Libs: -L$${libdir} -lcairn $(strip $(LIBS)) -pthread'
$(B)/cairn.pc: Makefile src/base/status.c
	@mkdir -p $(@D)
	$(call say,GEN)$(call pc,$(CURDIR),$(abspath $(B))) > $@

PREFIX ?= /usr/local
to = $(DESTDIR)$(PREFIX)
install: all
	install -d '$(to)/bin' '$(to)/include/cairn' '$(to)/lib/pkgconfig'
	install -m 755 $(B)/cairn '$(to)/bin'
	install -m 644 include/cairn/*.h '$(to)/include/cairn'
	install -m 644 $(B)/libcairn.a '$(to)/lib'
	@$(call pc,$(PREFIX),$${prefix}/lib) > '$(to)/lib/pkgconfig/cairn.pc'
# Folders that others share stay, empty or not; a PREFIX that held nothing else (/opt/cairn) goes.
uninstall:
	rm -f '$(to)/bin/cairn' '$(to)/lib/libcairn.a' '$(to)/lib/pkgconfig/cairn.pc'
	rm -rf '$(to)/include/cairn'
	@rmdir '$(to)/lib/pkgconfig' 2>/dev/null || :
	@cd '$(to)' 2>/dev/null || exit 0; \
	if [ -z "$$(find . -mindepth 1 ! -path ./bin ! -path ./include ! -path ./lib)" ]; then \
	    rmdir bin include lib "$$PWD" 2>/dev/null || :; fi

# As a user builds: the public headers, libcairn.a, and what pkg-config says.
examples: $(patsubst %.c,$(B)/%,$(wildcard examples/*.c))
$(B)/examples/%: examples/%.c $(B)/libcairn.a $(B)/cairn.pc
	@mkdir -p $(@D)
	$(call say,CC)$(CC) -std=c17 -Wall -Wextra -Werror $(HARD) -O2 -MMD -MT $@ -MF $@.d -o $@ $< \
	    $$(PKG_CONFIG_PATH=$(B) pkg-config --cflags --libs cairn) $(LDFLAGS)

# Programs under bench/ measure; kern-bench: the kernels, on one thread and on two.
$(B)/bench/%: $(B)/bench/%.o $(B)/internal.a
	$(call say,LINK)$(LINK) -o $@ $(filter %.o,$^) $(filter %.a,$^) $(LIBS)
$(B)/bench/bench_serve: $(B)/bench/reply_lines.o
$(B)/bench/bench_attend $(B)/bench/bench_recur: $(B)/tests/ops/ops_rig.o
kern-bench: $(B)/bench/bench_linear
	$< 1
	$< 2
# Every speed that matters, beside llama.cpp and the machine's limits: tables, hours; and the server under load, minutes.
# `make test` runs the latter for seconds (tests/cli/test_benches.py).
BENCH_SECONDS ?= 20
bench: $(B)/cairn $(B)/bench/bench_pool
	$(B)/bench/bench_pool
	bench/speed-table
	bench/scale
	bench/stolen-cores
bench-load: $(B)/cairn $(B)/bench/bench_engine $(B)/bench/bench_serve $(B)/tests/serve/fake_server
	$(B)/bench/bench_engine
	bench/serve-overhead
	bench/stream-gap --tokens 8000 --rounds 1 $(B)/cairn serve $$(tools/get-models qwen2.5-coder-0.5b) --port 0 --ctx 16384
	bench/serve -s $(BENCH_SECONDS)
# Nothing else builds lab/, and nothing of it is in the product.
lab: $(B)/lab/contract_cost
	$<
$(B)/lab/contract_cost: $(patsubst %.c,$(B)/%.o,$(wildcard lab/*.c)) $(B)/internal.a
	$(call say,LINK)$(LINK) -o $@ $(filter %.o,$^) $(filter %.a,$^) $(LIBS)

# Text against the references, at length: templates (llama.cpp's source package with all conversations, then
# random ones).  TEXT_PY: a python with jinja2, better with transformers.
TEXT_PY ?= $(shell tools/py-venv)
TEXT_TEMPLATES ?= $(or $(CAIRN_LLAMA_CPP),$(or $(XDG_CACHE_HOME),$(HOME)/.cache)/cairn/llama.cpp)/src/models/templates
TEXT_SEEDS ?= 70
# Tokenizers: TOK_CORPUS has a folder for each large vocabulary, TOK_LLAMA is what bench/get-llama.cpp prints.
# What is absent is skipped with a message.  In parts: TOK_TEXTS texts of each seed.
TOK_TEXTS ?= 100000
TOK_SEED ?= 1
tok_driver := $(B)/tests/text/tok_driver
check-text: $(B)/tests/text/test_jinja $(tok_driver)
	$(TEXT_PY) tests/text/compare_tokenizers.py $(tok_driver) '$(TOK_CORPUS)' --texts $(TOK_TEXTS) --seed $(TOK_SEED)
	$(TEXT_PY) tests/text/compare_random.py $(tok_driver) --files 2000
	$(TEXT_PY) tests/text/compare_classes.py $(tok_driver)
	$(TEXT_PY) tests/text/compare_gguf_pre.py $(tok_driver) '$(TOK_LLAMA)'
	$(TEXT_PY) tests/text/compare_templates.py $< --generated 40 tests/text/templates $(TEXT_TEMPLATES) $(TEXT_CONFIGS)
	$(TEXT_PY) tests/text/fuzz_templates.py $< --seed 100000 --count $(TEXT_SEEDS)000

# Random configs of every family, made by transformers.  SHAPES_PY: a python with torch, transformers, safetensors.
SHAPES_PY ?= python3
SHAPES_ARGS ?=
check-shapes: $(B)/tests/golden/test_families
	$(SHAPES_PY) tools/golden/try_shapes.py $< --keep $(B)/shapes $(SHAPES_ARGS)

# A small model may loop until its context is full: hence -n.
# The first half of the recipe is what a new machine lacks; it ends at once where nothing is missing.
MAKE_MORE = +@$(MAKE) --no-print-directory
run:
	@tools/install-deps
	$(MAKE_MORE) all
	@model=$$(tools/get-models smollm2) || exit 1; \
	if [ -z "$$PROMPT" ] && [ -t 0 ] && [ -t 1 ]; then exec $(B)/cairn run "$$model"; fi; \
	exec $(B)/cairn run "$$model" -n 512 -p "$${PROMPT:-Why is the sky blue? Answer in two sentences.}"

# The program and Python tests belong to the whole run, not to a chosen part.
is_part := $(filter-out $(TESTS),$(test_main))
PY_TESTS ?= tests
run_py := $(if $(is_part),,--bin $(B)/cairn $(PY_TESTS:%=--pytest %))
# Benchmarks are built with the tests, so that they keep compiling.
test-side: all examples $(patsubst %.c,$(B)/%,$(test_side) $(wildcard bench/bench_*.c))
test-build: $(test_bin) $(if $(is_part),,test-side)
test:
	@tools/install-deps
	$(MAKE_MORE) test-build
	@tools/run-tests $(run_py) $(test_bin)
kern-tests: $(patsubst %.c,$(B)/%,$(filter tests/kern/% tests/ops/%,$(test_main) $(test_side)))
# Real models take too long here, as do thousands of texts beside the references: the tiny models of tests/golden and
# the programs and fuzz targets of text run the same code.  Flags are words that every command reads in one way.
asan_py := $(filter-out tests/cli/test_benches.py tests/cli/test_flags.py tests/cli/test_manners.py tests/cli/test_pkg_config.py tests/cli/test_soak.py, \
                        $(wildcard tests/cli/test_*.py tests/hub/test_*.py tests/serve/test_*.py))
test-asan:
	$(MAKE_MORE) B=$(B)-asan SAN=address,undefined PY_TESTS='$(asan_py)' test
# Threads live in these folders.
tsan_tests := $(filter tests/unit/engine/% tests/unit/serve/% tests/sim/% \
                       $(filter-out %_crash.c,$(filter tests/unit/cache/test_store%,$(test_main))) \
                       tests/unit/base/test_workers.c tests/unit/base/test_thread.c,$(test_main))
tsan_serve := admin anthropic_client disconnect drain http memory models openai_client real responses
test-tsan:
	$(MAKE_MORE) B=$(B)-tsan SAN=thread TESTS='$(tsan_tests)' test
	$(MAKE_MORE) B=$(B)-tsan SAN=thread test-side
	@tools/run-tests --bin $(B)-tsan/cairn $(patsubst %,--pytest tests/serve/test_%.py,$(tsan_serve))

# `make test` does it 25 times with writers, 5 with servers.
CRASH_ROUNDS ?= 500
test-crash: $(B)/tests/unit/cache/test_store_crash $(B)/cairn
	$< $(CRASH_ROUNDS)
	CAIRN_CRASH_ROUNDS=$(CRASH_ROUNDS) CAIRN_BIN=$(abspath $(B)/cairn) $$(tools/py-venv) -m pytest -q -s tests/cli/test_crash.py

# `make test` runs a few short ones.  PROGRAMS_OF: pairs whose text it is part of, as "gemma3" or ", q8".
PROGRAMS_SEED ?= 1
PROGRAMS_COUNT ?= 10
PROGRAMS_OF ?=
test-programs: $(B)/tests/golden/test_cache_programs
	$< $(PROGRAMS_SEED) $(PROGRAMS_COUNT) '$(PROGRAMS_OF)'

# The scheduler at length; `make test` tries 10,000 requests.
SIM_REQUESTS ?= 100000
test-sim: $(B)/tests/sim/test_sched
	$< $(SIM_REQUESTS)

# Requests in company beside the same alone, COMPANY_SECONDS a model and build, after the answers alone, which the thread
# sanitizer gives 50 times as slowly: some minutes of SmolLM2.  `make test` tries tiny models.
COMPANY_SECONDS ?= 600
COMPANY_MODELS ?= $(shell tools/get-models smollm2)
test-company: $(B)/tests/sim/test_company
	$(MAKE_MORE) B=$(B)-tsan SAN=thread $(B)-tsan/tests/sim/test_company
	$< $(COMPANY_SECONDS) $(COMPANY_MODELS)
	$(B)-tsan/tests/sim/test_company $(COMPANY_SECONDS) $(COMPANY_MODELS)

# `make test` does it for some seconds.  SOAK_MODEL: else a tiny one.
SOAK_SECONDS ?= 1800
SOAK_MODEL ?=
test-soak: $(B)/cairn $(B)/bench/bench_serve
	CAIRN_SOAK_SECONDS=$(SOAK_SECONDS) CAIRN_SOAK_MODEL='$(SOAK_MODEL)' CAIRN_BIN=$(abspath $(B)/cairn) \
	    $$(tools/py-venv) -m pytest -q -s tests/cli/test_soak.py

# Of the page, of HTTP from outside and of other people's clients, each with Python packages of its own, installed on demand.
test-web: $(B)/cairn $(B)/tests/serve/fake_server
	CAIRN_BIN=$(abspath $(B)/cairn) CAIRN_SHOTS=$(abspath $(B)/web) $$(tools/py-venv web) -m pytest -q -rs tests/web
OPENAPI_EXAMPLES ?= 60
test-openapi: $(B)/tests/serve/fake_server
	CAIRN_BIN=$(abspath $(B)/cairn) $$(tools/py-venv openapi) tests/serve/openapi_fuzz.py $(OPENAPI_EXAMPLES)
test-clients: $(B)/cairn $(B)/tests/serve/fake_server
	CAIRN_BIN=$(abspath $(B)/cairn) $$(tools/py-venv clients) -m pytest -q -rs -W ignore tests/clients

# A server within an address space and within a control group, MEMORY_SECONDS each; `make test` takes seconds.
MEMORY_SECONDS ?= 300
test-memory: all
	CAIRN_BIN=$(abspath $(B))/cairn CAIRN_MEMORY_SECONDS=$(MEMORY_SECONDS) $$(tools/py-venv) -m pytest -q -rs tests/cli/test_memory_load.py

# Each target replays tests/fuzz/corpus/NAME, then makes inputs of its own for a while: always the same ones,
# but in fuzz-long.
FUZZ_SECONDS ?= 6
FUZZ_SEED ?= 1
$(B)/tests/fuzz/%: $(B)/tests/fuzz/%.o $(call obj,$(fuzz_help)) $(B)/internal.a
	$(call say,LINK)$(LINK) -fsanitize=fuzzer -o $@ $^ $(LIBS)
fuzz-build: $(fuzz_bin)
fuzz:
	$(MAKE_MORE) B=$(B)-fuzz CC=clang SAN=fuzzer-no-link,address,undefined fuzz-build
	@tools/run-fuzz --seconds $(FUZZ_SECONDS) --seed $(FUZZ_SEED) $(patsubst $(B)/%,$(B)-fuzz/%,$(fuzz_bin))
fuzz-long:
	$(MAKE_MORE) FUZZ_SECONDS=1200 FUZZ_SEED=0 fuzz

check:
	@find src include tests examples lab -name '*.[ch]' -o -name '*.cc' | sort | xargs clang-format --dry-run -Werror
	@python3 tools/layers.py --self-test
	@python3 tools/layers.py

# The checks that .ci/run makes of the touched files alone, on the whole tree: once a week.
check-all:
	@TIDY=all IWYU=all .ci/run check clang-tidy iwyu cppcheck

# Instructions of the hot paths, by callgrind, become tools/budgets.txt.
budgets:
	$(MAKE_MORE) $(B)/tests/golden/hot_paths
	@tools/budgets --write $(B)/tests/golden/hot_paths

compile_commands.json: FORCE
	@printf '%s\n' $(foreach f,$(filter %.c,$(src_all)),'$(f) $(strip $(call conv,$(f)) $(call isa,$(f)))') | \
	    python3 tools/compile-commands "$(CC) $(CFLAGS_ALL)" > $@

# What a program that links libcairn.a needs besides.
print-libs:
	@echo '$(strip $(LIBS))'

clean:
	rm -rf $(B) $(B)-asan $(B)-tsan $(B)-fuzz $(B)-clang $(B)-arm64

-include $(patsubst %.o,%.d,$(obj_lib) $(obj_cli) $(call obj,$(test_c) $(fuzz_all) $(wildcard bench/*.c examples/*.c lab/*.c)))
