/* What a row of parameters.inc is made of. */
#ifndef VELO_TYPES_PARAMETERS_H
#define VELO_TYPES_PARAMETERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The types of the members that rows become. */
#define VELO_TYPE_BOOL bool
#define VELO_TYPE_COUNT uint32_t
#define VELO_TYPE_INTEGER int
#define VELO_TYPE_LARGE uint64_t
#define VELO_TYPE_SIZE size_t
#define VELO_TYPE_TEXT const char*
#define VELO_TYPE_CHOICE const char*

/* Declares the member of a row. */
#define VELO_PARAMETER_MEMBER(type, name, ...) VELO_TYPE_##type name;

typedef enum velo_parameter_type {
    VELO_PARAMETER_BOOL,
    VELO_PARAMETER_COUNT,
    VELO_PARAMETER_INTEGER,
    VELO_PARAMETER_LARGE,
    VELO_PARAMETER_SIZE,
    VELO_PARAMETER_TEXT,
    VELO_PARAMETER_CHOICE /* one of some words */
} velo_parameter_type;

typedef enum velo_parameter_owner {
    VELO_PARAMETER_OF_ENGINE,   /* member of velo_config */
    VELO_PARAMETER_OF_BASE,     /* of every BTL: `offset` says nothing */
    VELO_PARAMETER_OF_MESSENGER, /* member of velo_messenger_config */
    VELO_PARAMETER_OF_COLL       /* member of velo_coll_config */
} velo_parameter_owner;

/* What a parameter may be. */
typedef struct velo_permitted {
    int64_t least, most;             /* of numbers */
    bool or_zero;                    /* 0 too, which chooses a value */
    const char* words;               /* TEXT: what it has to be */
    bool or_empty;                   /* TEXT: or nothing */
    const char* (*choice)(unsigned); /* CHOICE: the words in order, NULL beyond the last */
} velo_permitted;

typedef struct velo_parameter {
    const char* name; /* what users write: btl_velo_..., mtl_velo_... or coll_velo_... */
    const char* key;  /* the same without that */
    velo_parameter_type type;
    velo_parameter_owner owner;
    size_t offset;
    const char* text; /* the default of TEXT and CHOICE, NULL for the others */
    int64_t number;   /* the default of the others */
    velo_permitted permitted;
    int level;  /* of ompi_info, 1 to 9 */
    bool alike; /* in processes that talk to each other */
    const char* help;
} velo_parameter;

#ifdef __cplusplus
}

namespace velo::parameters {

constexpr velo_permitted between(int64_t least, int64_t most) {
    return {least, most, false, nullptr, false, nullptr};
}
constexpr velo_permitted any() {
    return between(0, 1);
}
constexpr velo_permitted zero_or(int64_t least, int64_t most) {
    return {least, most, true, nullptr, false, nullptr};
}
constexpr velo_permitted text(const char* words) {
    return {0, 0, false, words, false, nullptr};
}
constexpr velo_permitted text_or_none(const char* words) {
    return {0, 0, false, words, true, nullptr};
}
constexpr velo_permitted one_of(const char* (*choice)(unsigned)) {
    return {0, 0, false, nullptr, false, choice};
}

constexpr bool holds(const velo_permitted& permitted, int64_t number) {
    return (number >= permitted.least && number <= permitted.most) || (permitted.or_zero && number == 0);
}

}  // namespace velo::parameters
#endif
#endif
