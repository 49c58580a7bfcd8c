# Tern. `make chat` and `make test` do everything on a fresh machine.
#   make            the program, build/tern
#   make chat       missing packages, the program, a chat with the shipped model
#   make test       missing packages, every test; ends with "N passed, N failed"
#   make asan|tsan  the tests under AddressSanitizer+UBSan, or ThreadSanitizer
#   make bench      speed on this machine
#   make install    PREFIX=/usr/local DESTDIR=
#   make format|lint

SAN    ?=
B      ?= build$(if $(SAN),-$(subst $(comma),-,$(SAN)))
PREFIX ?= /usr/local
comma  := ,

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

all: $(B)/tern

$(B)/tern: $(B)/app/main.o $(call lib,app) $(call lib,ui) $(call lib,storage) \
           $(call lib,engine) $(call lib,app/base)
	$(CC) $(CFLAGS) $(LDFLAGS) $^ $(LDLIBS) -o $@

$(B)/%.o: %.c
	@mkdir -p $(@D)
	$(CC) $(CPPFLAGS) $(CFLAGS) -MMD -MP -c $< -o $@

# One archive a folder; app's leaves main.o out, so that tests can link it.
define archive
$(call lib,$(1)): $(filter-out $(B)/app/main.o,$(patsubst %.c,$(B)/%.o,$(wildcard $(1)/*.c)))
	@mkdir -p $$(@D)
	@rm -f $$@
	$$(AR) rcs $$@ $$^
endef
$(foreach d,$(FOLDERS),$(eval $(call archive,$(d))))

# Shaders: each line of shaders/variants.mk is one SPIR-V module.
SPV :=
define variant
SPV += $(B)/shaders/$(1).spv.h
$(B)/shaders/$(1).spv.h: shaders/$(2).comp
	@mkdir -p $$(@D)
	glslangValidator --quiet -V --target-env vulkan1.2 -Ishaders $(3) \
	    --vn spv_$(1) --depfile $$@.d -o $$@ $$<
$(B)/shaders/$(1).spv: shaders/$(2).comp
	@mkdir -p $$(@D)
	glslangValidator --quiet -V --target-env vulkan1.2 -Ishaders $(3) -o $$@ $$<
endef
include shaders/variants.mk
$(B)/shaders/spirv.h: $(SPV)
	@mkdir -p $(@D)
	@for f in $(sort $(notdir $(SPV))); do echo "#include \"shaders/$$f\""; done > $@
$(B)/engine/kernel.o: $(B)/shaders/spirv.h

# SQL and other text that is embedded as a string.
$(B)/storage/schema.sql.h: storage/schema.sql
	@mkdir -p $(@D)
	@sed -e 's/\\/\\\\/g' -e 's/"/\\"/g' -e 's/^/"/' -e 's/$$/\\n"/' $< > $@
$(patsubst %.c,$(B)/%.o,$(wildcard storage/*.c)): $(B)/storage/schema.sql.h

# Tests: tests/FOLDER/test_x.c links that folder and what lies below it.
TESTS := $(patsubst %.c,$(B)/%,$(wildcard tests/*/test_*.c))
$(B)/tests/base/%: $(B)/tests/base/%.o $(call lib,app/base)
	$(CC) $(CFLAGS) $(LDFLAGS) $^ $(LDLIBS) -o $@
$(B)/tests/engine/%: $(B)/tests/engine/%.o $(call lib,engine) $(call lib,app/base)
	$(CC) $(CFLAGS) $(LDFLAGS) $^ $(LDLIBS) -o $@
$(B)/tests/storage/%: $(B)/tests/storage/%.o $(call lib,storage) $(call lib,app/base)
	$(CC) $(CFLAGS) $(LDFLAGS) $^ $(LDLIBS) -o $@
$(B)/tests/ui/%: $(B)/tests/ui/%.o $(call lib,ui) $(call lib,app/base)
	$(CC) $(CFLAGS) $(LDFLAGS) $^ $(LDLIBS) -o $@
$(B)/tests/app/%: $(B)/tests/app/%.o $(call lib,app) $(call lib,ui) $(call lib,storage) \
                  $(call lib,engine) $(call lib,app/base)
	$(CC) $(CFLAGS) $(LDFLAGS) $^ $(LDLIBS) -o $@

.PHONY: all
.SECONDARY:
-include $(shell find $(B) -name '*.d' 2>/dev/null)
