# Tern. `make chat` and `make test` do everything on a fresh machine.
#   make            the program, build/tern
#   make chat       missing packages, the program, a chat with the shipped model
#                   (MODEL=file.gguf for another one)
#   make test       missing packages, every test; ends with "N passed, N failed"
#                   (ONLY=text for the tests whose path contains it)
#   make asan|tsan  the tests under AddressSanitizer+UBSan, or ThreadSanitizer
#   make fuzz       libFuzzer on every target, SECONDS=60 each (ONLY=text for some)
#   make long       an hour of chatting, MINUTES=N: nothing may grow
#   make bench      speed on this machine
#   make install    PREFIX=/usr/local DESTDIR=      make uninstall
#   make format|lint|clean
# V=1 prints the commands.

SAN    ?=
comma  := ,
B      ?= build$(if $(SAN),-$(subst $(comma),-,$(SAN)))
PREFIX ?= /usr/local
MODEL  ?=
ONLY   ?=
# A short line instead of each command: $(call Q,CC).
Q       = $(if $(V),,@echo "  $(1) $(patsubst $(B)/%,%,$@)" && )

CSTD     := -std=c11 -D_POSIX_C_SOURCE=200809L -D_XOPEN_SOURCE=700 -D_DEFAULT_SOURCE
WARN     := -Wall -Wextra -Wshadow -Wstrict-prototypes -Wmissing-prototypes -Wvla \
            -Wwrite-strings -Wpointer-arith -Wcast-qual -Wundef -Wformat=2 -Werror
CFLAGS   ?= -O2 -g
override CFLAGS += $(CSTD) $(WARN) -fno-strict-aliasing -fvisibility=hidden
CPPFLAGS += -I. -Iapp -I$(B) -DTERN_PREFIX='"$(PREFIX)"'
LDLIBS   := -lvulkan -lsqlite3 -lncursesw -lutf8proc -lmd4c -lxxhash -linih -lm -pthread
ifneq ($(SAN),)
override CFLAGS += -O1 -fno-omit-frame-pointer -fsanitize=$(SAN) -fno-sanitize-recover=all
LDFLAGS  += -fsanitize=$(SAN)
endif

FOLDERS := app/base engine storage ui app
SRC     := $(foreach d,$(FOLDERS),$(wildcard $(d)/*.c))
OBJ     := $(SRC:%.c=$(B)/%.o)
lib      = $(B)/lib$(subst /,-,$(1)).a
LIBS    := $(foreach d,$(FOLDERS),$(call lib,$(d)))

# Sub-makes use every core, unless the caller has chosen a number of jobs.
NPROC   := $(shell nproc 2>/dev/null || echo 2)
SUBMAKE  = $(MAKE) --no-print-directory $(if $(findstring -j,$(MAKEFLAGS)),,-j$(NPROC))

all: $(B)/tern

$(B)/tern: $(B)/app/main.o $(call lib,app) $(call lib,ui) $(call lib,storage) \
           $(call lib,engine) $(call lib,app/base)
	$(call Q,LD)$(CC) $(CFLAGS) $(LDFLAGS) $^ $(LDLIBS) -o $@

$(B)/%.o: %.c
	@mkdir -p $(@D)
	$(call Q,CC)$(CC) $(CPPFLAGS) $(CFLAGS) -MMD -MP -c $< -o $@

# What names the install prefix is compiled again when the prefix changes.
$(B)/prefix: FORCE
	@mkdir -p $(@D)
	@echo '$(PREFIX)' | cmp -s - $@ || echo '$(PREFIX)' > $@
$(patsubst %.c,$(B)/%.o,$(shell grep -l TERN_PREFIX $(SRC) /dev/null)): $(B)/prefix

# One archive a folder; app's leaves main.o out, so that tests can link it.
define archive
$(call lib,$(1)): $(filter-out $(B)/app/main.o,$(patsubst %.c,$(B)/%.o,$(wildcard $(1)/*.c)))
	@mkdir -p $$(@D)
	@rm -f $$@
	@$$(AR) rcs $$@ $$^
endef
$(foreach d,$(FOLDERS),$(eval $(call archive,$(d))))

# Shaders: each line of shaders/variants.mk is one SPIR-V module. The modules
# that the tests validate are the ones that the program embeds.
SPV :=
define variant
SPV += $(B)/shaders/$(1).spv
$(B)/shaders/$(1).spv: shaders/$(2).comp shaders/variants.mk
	@mkdir -p $$(@D)
	$$(call Q,SPV)glslangValidator --quiet -V --target-env vulkan1.2 -Ishaders $(3) \
	    --depfile $$@.d -o $$@ $$<
endef
include shaders/variants.mk
shaders/%.glsl shaders/%.h: ;
$(B)/shaders/%.spv.h: $(B)/shaders/%.spv
	@{ echo "static const uint32_t spv_$*[] = {"; \
	   od -An -v -tx4 -w32 $< | sed 's/ *\([0-9a-f]\{8\}\)/0x\1,/g'; \
	   echo "};"; } > $@
# With cooperative matrices: see shaders/tile_matrix.glsl.
$(B)/shaders/tile_matrix_%.spv.h: $(B)/shaders/tile_matrix_%.spv shaders/matrix.awk
	@{ echo "static const uint32_t spv_tile_matrix_$*[] = {"; \
	   od -An -v -tu4 -w4 $< | awk -f shaders/matrix.awk | sed 's/$$/,/'; \
	   echo "};"; } > $@
$(B)/shaders/spirv.h: $(SPV:%=%.h)
	@for f in $(sort $(notdir $^)); do echo "#include \"shaders/$$f\""; done > $@
$(B)/engine/kernel.o: $(B)/shaders/spirv.h

# SQL and other text that is embedded as a string.
$(B)/storage/schema.sql.h: storage/schema.sql
	@mkdir -p $(@D)
	@sed -e 's/\\/\\\\/g' -e 's/"/\\"/g' -e 's/^/"/' -e 's/$$/\\n"/' $< > $@
$(patsubst %.c,$(B)/%.o,$(wildcard storage/*.c)): $(B)/storage/schema.sql.h

# Tests: tests/FOLDER/x.c is a program if it is named test_* or has a main()
# (those that scripts run). It links the other sources of its folder, the
# library of that name and what lies below it.
TESTS := $(patsubst %.c,$(B)/%,$(wildcard tests/*/test_*.c))
TOOLS := $(patsubst %.c,$(B)/%,$(filter-out tests/fuzz/%,$(shell grep -lw '^int main' tests/*/*.c /dev/null)))
define test_rule
$(filter $(B)/tests/$(1)/%,$(TESTS) $(TOOLS)): $(B)/%: $(B)/%.o \
    $(patsubst %,%.o,$(filter-out $(TESTS) $(TOOLS),$(patsubst %.c,$(B)/%,$(wildcard tests/$(1)/*.c)))) \
    $(foreach d,$(2),$(call lib,$(d)))
	$$(call Q,LD)$$(CC) $$(CFLAGS) $$(LDFLAGS) $$^ $$(LDLIBS) -o $$@
endef
$(eval $(call test_rule,base,app/base))
$(eval $(call test_rule,engine,engine app/base))
$(eval $(call test_rule,storage,storage app/base))
$(eval $(call test_rule,ui,ui app/base))
$(eval $(call test_rule,app,app ui storage engine app/base))
$(eval $(call test_rule,whole,app ui storage engine app/base))

# Fuzz targets: with runner.c, what their corpora and mutations of them do; with
# libFuzzer (make fuzz), a search for more.
FUZZ := $(patsubst %.c,$(B)/%,$(filter-out %/runner.c,$(wildcard tests/fuzz/*.c)))
FUZZ_LIBS := $(foreach d,app ui storage engine app/base,$(call lib,$(d)))
$(FUZZ): $(B)/%: $(B)/%.o $(B)/tests/fuzz/runner.o $(FUZZ_LIBS)
	$(call Q,LD)$(CC) $(CFLAGS) $(LDFLAGS) $^ $(LDLIBS) -o $@
FUZZERS := $(foreach t,$(FUZZ),$(if $(ONLY),$(if $(findstring $(ONLY),$(t)),$(t)-search),$(t)-search))
$(FUZZ:%=%-search): %-search: %.o $(FUZZ_LIBS)
	$(call Q,LD)$(CC) $(CFLAGS) -fsanitize=fuzzer,address,undefined $^ $(LDLIBS) -o $@
fuzzers: $(FUZZERS)

# What `make test` runs: checks of the tree, test programs, scripted sessions
# (a script that others source is not executable). ThreadSanitizer runs the
# programs that have threads.
SUITE := $(filter-out tests/run.sh tests/long.sh,$(wildcard tests/*.sh)) $(TESTS) $(FUZZ) \
         $(shell find tests -mindepth 2 -name '*.sh' -perm -u+x | sort)
ifeq ($(SAN),thread)
SUITE := $(foreach t,mailbox worker app,$(filter $(B)/tests/%/test_$(t),$(TESTS)))
endif
ifneq ($(ONLY),)
SUITE := $(foreach t,$(SUITE),$(if $(findstring $(ONLY),$(t)),$(t)))
endif
suite: $(B)/tern $(filter $(TESTS) $(FUZZ),$(SUITE)) $(TOOLS) $(SPV)

chat:
	@.ci/deps build
	@$(SUBMAKE) all
	@$(B)/tern $(if $(MODEL),-m '$(MODEL)')

test:
	@.ci/deps test
	@$(SUBMAKE) suite
	@TERN=$(B)/tern BUILD=$(B) tests/run.sh $(SUITE)

asan:
	@$(MAKE) --no-print-directory SAN=address,undefined test
tsan:
	@$(MAKE) --no-print-directory SAN=thread test

SECONDS ?= 60
fuzz:
	@.ci/deps fuzz
	@$(SUBMAKE) CC=clang B=$(B)-fuzz SAN=fuzzer-no-link,address,undefined fuzzers
	@B=$(B)-fuzz sh tests/fuzz/search.sh $(SECONDS) $(FUZZERS:$(B)/%=$(B)-fuzz/%)

# An hour of chatting, or MINUTES=N: nothing may grow.
long:
	@.ci/deps test
	@$(SUBMAKE) all
	@TERN=$(B)/tern tests/long.sh

bench:
	@.ci/deps build
	@$(SUBMAKE) all
	@$(B)/tern bench $(if $(MODEL),-m '$(MODEL)')

# The manual page's tables are those that the program goes by.
$(B)/tern.1: assets/tern.1 $(B)/tern
	@awk '/^\.\\" @/ { system("$(B)/tern manual " substr($$2, 2)); next } \
	      { print; fflush() }' $< > $@
COMPLETIONS := $(patsubst %,$(B)/completion.%,bash zsh fish)
$(COMPLETIONS): $(B)/completion.%: $(B)/tern
	@$(B)/tern completion $* > $@

SHARE = $(DESTDIR)$(PREFIX)/share
SHELLS = $(SHARE)/bash-completion/completions/tern $(SHARE)/zsh/site-functions/_tern \
         $(SHARE)/fish/vendor_completions.d/tern.fish
install: all $(B)/tern.1 $(COMPLETIONS)
	install -d $(DESTDIR)$(PREFIX)/bin $(SHARE)/tern/assets $(SHARE)/man/man1
	install -m 755 $(B)/tern $(DESTDIR)$(PREFIX)/bin/tern
	install -m 644 assets/tern-mini.gguf assets/WORDNET-LICENSE.txt $(SHARE)/tern/assets
	install -m 644 LICENSE $(SHARE)/tern/LICENSE
	install -m 644 $(B)/tern.1 $(SHARE)/man/man1/tern.1
	install -d $(dir $(SHELLS))
	install -m 644 $(B)/completion.bash $(word 1,$(SHELLS))
	install -m 644 $(B)/completion.zsh $(word 2,$(SHELLS))
	install -m 644 $(B)/completion.fish $(word 3,$(SHELLS))
uninstall:
	rm -f $(DESTDIR)$(PREFIX)/bin/tern $(SHARE)/man/man1/tern.1 $(SHELLS)
	rm -rf $(SHARE)/tern

C_FILES = $(wildcard $(FOLDERS:%=%/*.[ch]) tests/*.h tests/*/*.[ch])
format:
	@.ci/deps lint
	clang-format -i $(C_FILES)
# The generated headers must exist before anything can be parsed. The table of
# kernels is kept from cppcheck, which would read its numbers for minutes. What it
# calls uninitialised is a struct err that the callee fills; gcc checks the rest.
# gcc's analyzer does not follow callers that have checked an index, clang's does:
# null pointers are left to that one.
ANALYZE = $(CC) $(CPPFLAGS) $(CSTD) -O1 -fanalyzer -Wno-analyzer-null-dereference -Werror
lint:
	@.ci/deps lint
	@$(SUBMAKE) $(B)/shaders/spirv.h $(B)/storage/schema.sql.h
	cppcheck -j$(NPROC) --quiet --std=c11 --error-exitcode=1 --inline-suppr \
	    --enable=warning,performance --suppress=missingInclude \
	    --suppress=unknownMacro --suppress=uninitvar $(CPPFLAGS) -iengine/kernel.c $(FOLDERS)
	@$(SUBMAKE) $(SRC:%=tidy/%) $(SRC:%=analyze/%)
tidy/%:
	@echo "  TIDY $*"
	@clang-tidy --quiet $* -- $(CPPFLAGS) $(CSTD) 2>/dev/null
analyze/%:
	@echo "  ANALYZE $*"
	@$(ANALYZE) -c $* -o /dev/null
clean:
	rm -rf build build-*

FORCE:
.PHONY: all suite chat test asan tsan fuzz fuzzers long bench install uninstall format lint clean FORCE
.DELETE_ON_ERROR:
-include $(shell find $(B) -name '*.d' 2>/dev/null)
