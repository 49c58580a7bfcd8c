/* languages.c - what highlight.c needs to know of each language. */
#include "ui/highlight.h"

#include <string.h>
#include <strings.h>

#define C_LINE \
    {          \
        "//"   \
    }
#define C_BLOCK    \
    {              \
        "/*", "*/" \
    }
#define C_KEYWORDS                                                                   \
    "auto break case const continue default do else enum extern for goto if inline " \
    "register restrict return sizeof static struct switch typedef union volatile "   \
    "while _Alignas _Atomic _Generic _Static_assert NULL true false"
#define C_TYPES                                                                       \
    "bool char double float int long short signed unsigned void size_t ssize_t "      \
    "int8_t int16_t int32_t int64_t uint8_t uint16_t uint32_t uint64_t intptr_t FILE" \
    " ptrdiff_t wchar_t"
#define JS_KEYWORDS                                                                 \
    "as async await break case catch class const continue debugger default delete " \
    "do else export extends finally for from function get if import in instanceof " \
    "let new of return set static super switch this throw try typeof var void "     \
    "while with yield true false null undefined NaN"

static const struct language languages[] = {
    { .names = "c h",
      .line = C_LINE,
      .block = C_BLOCK,
      .quotes = "\"'",
      .keywords = C_KEYWORDS,
      .types = C_TYPES,
      .flags = LANG_DIRECTIVES | LANG_ONE_LINE },
    { .names = "cpp c++ cc cxx hpp cuda",
      .line = C_LINE,
      .block = C_BLOCK,
      .quotes = "\"'",
      .keywords = C_KEYWORDS
      " and catch class concept consteval constexpr constinit const_cast co_await "
      "co_return co_yield decltype delete dynamic_cast explicit export final friend "
      "mutable namespace new noexcept not nullptr operator or override private "
      "protected public reinterpret_cast requires static_cast template this throw "
      "try typename using virtual",
      .types = C_TYPES " string vector map set pair array span optional",
      .flags = LANG_DIRECTIVES | LANG_ONE_LINE },
    { .names = "glsl hlsl wgsl metal opencl",
      .line = C_LINE,
      .block = C_BLOCK,
      .quotes = "\"",
      .keywords = C_KEYWORDS " in out inout uniform buffer layout shared precision "
                             "highp mediump lowp flat smooth discard readonly writeonly",
      .types = C_TYPES " vec2 vec3 vec4 ivec2 ivec3 ivec4 uvec2 uvec3 uvec4 mat2 mat3 "
                       "mat4 uint half half2 half4 float2 float3 float4 sampler2D",
      .flags = LANG_DIRECTIVES },
    { .names = "cs csharp c#",
      .line = C_LINE,
      .block = C_BLOCK,
      .quotes = "\"'",
      .keywords =
          "abstract as async await base break case catch class const continue default "
          "delegate do else enum event explicit extern false finally fixed for foreach "
          "get goto if implicit in init interface internal is lock namespace new null "
          "operator out override params private protected public readonly record ref "
          "return sealed set sizeof static struct switch this throw true try typeof "
          "unchecked unsafe using value var virtual when where while with yield",
      .types = "bool byte char decimal double dynamic float int long object sbyte short "
               "string uint ulong ushort void Task List Dictionary",
      .flags = LANG_ONE_LINE },
    { .names = "java",
      .line = C_LINE,
      .block = C_BLOCK,
      .quotes = "\"'",
      .long_quotes = "\"",
      .keywords =
          "abstract assert break case catch class const continue default do else enum "
          "extends false final finally for goto if implements import instanceof "
          "interface native new null package permits private protected public record "
          "return sealed static strictfp super switch synchronized this throw throws "
          "transient true try var volatile while yield",
      .types = "boolean byte char double float int long short void String Integer Object "
               "List Map Set",
      .flags = LANG_ONE_LINE },
    { .names = "kotlin kt kts",
      .line = C_LINE,
      .block = C_BLOCK,
      .quotes = "\"'",
      .long_quotes = "\"",
      .keywords =
          "abstract as break by catch class companion const constructor continue data do "
          "else enum false final finally for fun if import in init inline interface "
          "internal is lateinit null object open operator out override package private "
          "protected public return sealed super suspend this throw true try typealias "
          "val var vararg when where while",
      .types = "Any Boolean Byte Char Double Float Int List Long Map Set String Unit",
      .flags = LANG_ONE_LINE },
    { .names = "swift",
      .line = C_LINE,
      .block = C_BLOCK,
      .quotes = "\"",
      .long_quotes = "\"",
      .keywords =
          "actor as associatedtype async await break case catch class continue default "
          "defer do else enum extension fallthrough false final for func get guard if "
          "import in indirect init inout internal is lazy let mutating nil open operator "
          "override private protocol public repeat required rethrows return self set "
          "some static struct subscript super switch throw throws true try typealias var "
          "weak where while",
      .types = "Any Array Bool Character Dictionary Double Float Int Optional Set String "
               "Void",
      .flags = LANG_ONE_LINE },
    { .names = "go golang",
      .line = C_LINE,
      .block = C_BLOCK,
      .quotes = "\"'`",
      .keywords =
          "break case chan const continue default defer else fallthrough false for func "
          "go goto if import interface iota map nil package range return select struct "
          "switch true type var append cap close copy delete len make new panic recover",
      .types = "any bool byte complex64 complex128 error float32 float64 int int8 int16 "
               "int32 int64 rune string uint uint8 uint16 uint32 uint64 uintptr" },
    { .names = "rust rs",
      .line = C_LINE,
      .block = C_BLOCK,
      .quotes = "\"'",
      .keywords =
          "as async await break const continue crate dyn else enum extern false fn for "
          "if impl in let loop match mod move mut pub ref return self Self static struct "
          "super trait true type unsafe use where while",
      .types =
          "bool char f32 f64 i8 i16 i32 i64 i128 isize str u8 u16 u32 u64 u128 usize "
          "Box Option Result Some None Ok Err String Vec HashMap Rc Arc",
      .flags = LANG_TICKS },
    { .names = "zig",
      .line = C_LINE,
      .quotes = "\"'",
      .keywords =
          "align allowzero and anyframe anytype asm async await break catch comptime "
          "const continue defer else enum errdefer error export extern false fn for if "
          "inline noalias null or orelse packed pub resume return struct suspend switch "
          "test threadlocal true try undefined union unreachable usingnamespace var "
          "volatile while",
      .types = "bool f16 f32 f64 i8 i16 i32 i64 isize type u8 u16 u32 u64 usize void",
      .flags = LANG_ONE_LINE },
    { .names = "js javascript jsx mjs node",
      .line = C_LINE,
      .block = C_BLOCK,
      .quotes = "\"'`",
      .keywords = JS_KEYWORDS,
      .types = "Array Boolean Date Error JSON Map Math Number Object Promise RegExp Set "
               "String Symbol console document window",
      .flags = LANG_ONE_LINE },
    { .names = "ts typescript tsx",
      .line = C_LINE,
      .block = C_BLOCK,
      .quotes = "\"'`",
      .keywords =
          JS_KEYWORDS " abstract declare enum implements interface is keyof "
                      "namespace private protected public readonly satisfies type",
      .types = "any bigint boolean never number object string symbol unknown void Array "
               "Date Error Map Partial Promise Record Set",
      .flags = LANG_ONE_LINE },
    { .names = "php",
      .line = { "//", "#" },
      .block = C_BLOCK,
      .quotes = "\"'",
      .keywords =
          "abstract and array as break case catch class clone const continue declare "
          "default do echo else elseif empty extends final finally fn for foreach "
          "function global goto if implements include instanceof interface isset list "
          "match namespace new null or print private protected public readonly require "
          "return static switch this throw trait true false try unset use var while xor "
          "yield",
      .types = "bool float int iterable mixed object string void",
      .flags = LANG_DOLLAR },
    { .names = "python py python3 py3 pycon ipython",
      .line = { "#" },
      .quotes = "\"'",
      .long_quotes = "\"'",
      .keywords =
          "and as assert async await break case class continue def del elif else except "
          "finally for from global if import in is lambda match nonlocal not or pass "
          "raise return try while with yield None True False self",
      .types =
          "bool bytes complex dict enumerate filter float frozenset int len list map "
          "object open print range reversed set sorted str sum super tuple type zip",
      .flags = LANG_ONE_LINE },
    { .names = "ruby rb",
      .line = { "#" },
      .block = { "=begin", "=end" },
      .quotes = "\"'`",
      .keywords =
          "alias and begin break case class def defined? do else elsif end ensure false "
          "for if in module next nil not or redo rescue retry return self super then "
          "true undef unless until when while yield require attr_accessor attr_reader "
          "puts",
      .flags = LANG_HASH },
    { .names = "perl pl",
      .line = { "#" },
      .quotes = "\"'`",
      .keywords =
          "and chomp close die do each else elsif eq for foreach ge gt if keys last "
          "le lt my ne next no open or our package print printf push require "
          "return shift split sub undef unless until use while xor",
      .flags = LANG_DOLLAR | LANG_HASH },
    { .names = "lua",
      .line = { "--" },
      .block = { "--[[", "]]" },
      .quotes = "\"'",
      .keywords = "and break do else elseif end false for function goto if in local nil "
                  "not or repeat return then true until while",
      .types = "ipairs pairs print require string table tostring tonumber type",
      .flags = LANG_ONE_LINE },
    { .names = "r",
      .line = { "#" },
      .quotes = "\"'",
      .keywords =
          "break else FALSE for function if in Inf library NA NaN next NULL repeat "
          "return TRUE while",
      .types = "c data.frame factor list matrix vector" },
    { .names = "julia jl",
      .line = { "#" },
      .block = { "#=", "=#" },
      .quotes = "\"",
      .long_quotes = "\"",
      .keywords =
          "abstract baremodule begin break catch const continue do else elseif end "
          "export false finally for function global if import in let local macro "
          "module mutable nothing quote return struct true try using where while",
      .types =
          "Any Array Bool Dict Float32 Float64 Int Int32 Int64 Matrix String Vector" },
    { .names = "haskell hs",
      .line = { "--" },
      .block = { "{-", "-}" },
      .quotes = "\"'",
      .keywords =
          "case class data default deriving do else family forall foreign if "
          "import in infix infixl infixr instance let module newtype of qualified "
          "then type where",
      .types =
          "Bool Char Double Either Float IO Int Integer Just Left Maybe Nothing Right "
          "String True False",
      .flags = LANG_TICKS | LANG_ONE_LINE },
    { .names = "sh bash shell zsh console shell-session sh-session fish ksh",
      .line = { "#" },
      .quotes = "\"'",
      .keywords =
          "alias break case cd continue do done echo elif else esac eval exec exit "
          "export "
          "false fi for function if in local printf read readonly return select set "
          "shift source sudo test then time trap true type unset until while",
      .flags = LANG_DOLLAR | LANG_HASH },
    { .names = "powershell ps1 pwsh",
      .line = { "#" },
      .block = { "<#", "#>" },
      .quotes = "\"'",
      .keywords =
          "begin break catch class continue do else elseif end exit filter finally "
          "for foreach function if in param process return switch throw trap try "
          "until while",
      .flags = LANG_DOLLAR | LANG_NO_CASE },
    { .names = "make makefile mk",
      .line = { "#" },
      .keywords =
          "define else endef endif export ifdef ifeq ifndef ifneq include override "
          "unexport vpath",
      .flags = LANG_EQUAL_KEYS | LANG_COLON_KEYS },
    { .names = "cmake",
      .line = { "#" },
      .quotes = "\"",
      .keywords = "else elseif endforeach endfunction endif endmacro foreach function if "
                  "include macro message option project set target_link_libraries",
      .flags = LANG_NO_CASE },
    { .names = "dockerfile docker containerfile",
      .line = { "#" },
      .quotes = "\"'",
      .keywords = "ADD ARG AS CMD COPY ENTRYPOINT ENV EXPOSE FROM HEALTHCHECK LABEL RUN "
                  "SHELL STOPSIGNAL USER VOLUME WORKDIR",
      .flags = LANG_DOLLAR | LANG_HASH },
    { .names = "sql sqlite mysql postgres postgresql plsql",
      .line = { "--" },
      .block = C_BLOCK,
      .quotes = "'\"`",
      .keywords =
          "add all alter and as asc begin between by case check column commit constraint "
          "create cross default delete desc distinct drop else end exists foreign from "
          "full group having if in index inner insert into is join key left like limit "
          "not null offset on or order outer primary references returning right rollback "
          "select set table then transaction trigger union unique update using values "
          "view virtual when where with",
      .types = "bigint blob boolean char date decimal double float integer int numeric "
               "real serial smallint text time timestamp varchar",
      .flags = LANG_NO_CASE },
    { .names = "json jsonc json5 jsonl",
      .line = { "//" },
      .block = C_BLOCK,
      .quotes = "\"",
      .keywords = "true false null",
      .flags = LANG_COLON_KEYS | LANG_ONE_LINE },
    { .names = "yaml yml",
      .line = { "#" },
      .quotes = "\"'",
      .keywords = "true false null yes no on off",
      .flags = LANG_COLON_KEYS | LANG_HASH | LANG_ONE_LINE },
    { .names = "toml ini conf cfg properties desktop",
      .line = { "#", ";" },
      .quotes = "\"'",
      .keywords = "true false",
      .flags = LANG_EQUAL_KEYS | LANG_ONE_LINE },
    { .names = "css scss less",
      .line = { "//" },
      .block = C_BLOCK,
      .quotes = "\"'",
      .keywords = "important media import keyframes font-face supports",
      .flags = LANG_COLON_KEYS | LANG_ONE_LINE },
    { .names = "html xml xhtml svg vue svelte",
      .block = { "<!--", "-->" },
      .flags = LANG_MARKUP },
    { .names = "diff patch", .flags = LANG_DIFF },
    { .names = "asm nasm s",
      .line = { ";", "#" },
      .quotes = "\"'",
      .keywords =
          "add and call cmp dec div inc int ja jb je jg jl jmp jne jnz jz lea mov "
          "mul nop or pop push ret shl shr sub syscall test xor global section",
      .types = "eax ebx ecx edx rax rbx rcx rdx rsi rdi rsp rbp",
      .flags = LANG_NO_CASE | LANG_ONE_LINE },
    { .names = "vim viml",
      .quotes = "'",
      .keywords = "autocmd call colorscheme echo else elseif endfor endfunction endif "
                  "endwhile execute for function if let map nmap nnoremap return set "
                  "syntax while" },
    { .names = "nix",
      .line = { "#" },
      .block = C_BLOCK,
      .quotes = "\"",
      .keywords =
          "assert else if import in inherit let or rec then with true false null" },
    { .names = "elixir ex exs erlang",
      .line = { "#" },
      .quotes = "\"'",
      .long_quotes = "\"",
      .keywords =
          "after alias and case catch cond def defmodule defp do else end false fn "
          "for if import in nil not or quote raise receive require rescue true "
          "try unless use when with" },
    { .names = "scala",
      .line = C_LINE,
      .block = C_BLOCK,
      .quotes = "\"'",
      .long_quotes = "\"",
      .keywords =
          "abstract case catch class def do else enum extends false final finally "
          "for given if implicit import lazy match new null object override "
          "package private protected return sealed super this throw trait true try "
          "type using val var while with yield",
      .types = "Any Boolean Byte Char Double Float Int List Long Map Option Set String "
               "Unit",
      .flags = LANG_TICKS | LANG_ONE_LINE },
};

static bool holds(const char *names, const char *name, size_t n)
{
    while (*names) {
        size_t len = strcspn(names, " ");
        if (len == n && !strncasecmp(names, name, n))
            return true;
        names += len + (names[len] == ' ');
    }
    return false;
}

const struct language *language_find(const char *name, size_t n)
{
    for (size_t i = 0; n > 0 && i < sizeof languages / sizeof *languages; i++)
        if (holds(languages[i].names, name, n))
            return &languages[i];
    return NULL;
}
