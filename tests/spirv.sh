#!/bin/bash
# spirv.sh - every SPIR-V module that the program embeds is valid.
set -u
bad=0 n=0
while read -r m; do
    n=$((n + 1))
    # Cooperative matrices are complete only after shaders/matrix.awk, and newer than
    # some spirv-val: their twins without them are checked in their stead.
    case $m in tile_matrix_*) continue ;; esac
    spirv-val --target-env vulkan1.2 "$BUILD/shaders/$m.spv" >"$BUILD/logs/spirv-val" 2>&1 && continue
    bad=$((bad + 1))
    sed "s/^/# $m: /" "$BUILD/logs/spirv-val"
done < <(sed -n 's/^#include "shaders\/\(.*\)\.spv\.h"$/\1/p' "$BUILD/shaders/spirv.h")
echo "# $n modules"
if [ "$n" -gt 0 ] && [ "$bad" -eq 0 ]; then
    echo "ok modules_are_valid"
else
    echo "not ok modules_are_valid"
    exit 1
fi
