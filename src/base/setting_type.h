/* SPDX-License-Identifier: BSD-3-Clause */
/* Types of settings: how the value of a setting is parsed from a text, and formatted as one. */

#ifndef SAR_BASE_SETTING_TYPE_H
#define SAR_BASE_SETTING_TYPE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/** Value of a grain that the planner chooses. */
enum { SAR_AUTO = 0 };

/** Value of a number of bytes or messages that the cost model chooses. */
#define SAR_U64_AUTO UINT64_MAX

struct sar_setting;

/** Functions of a type. config points to the struct that holds the values. */
struct sar_setting_type {
    /** Sets the field of config that the text gives a value. Returns false if the text is not valid. */
    bool (*parse)(const struct sar_setting *setting, const char *text, void *config);
    /** Writes the value to text, which has room for `capacity` bytes. */
    void (*format)(const struct sar_setting *setting, const void *config, char *text, size_t capacity);
};

/** One row of the table of settings. */
struct sar_setting {
    const char *name;     /**< in capitals, without prefix */
    const char *fallback; /**< default, as a text */
    const char *help;     /**< valid values in words */
    size_t offset;        /**< bytes from the start of config to the value */
    const struct sar_setting_type *type;
    const char *const *choices; /**< names of an enumeration or a switch, ended by NULL */
    double min, max;            /**< bounds of a number; max 0: none for integers */
};

extern const struct sar_setting_type sar_setting_text;        /**< char[SAR_SETTING_TEXT] */
extern const struct sar_setting_type sar_setting_path;        /**< char[SAR_SETTING_PATH] */
extern const struct sar_setting_type sar_setting_log;         /**< text that sar_log_parse accepts */
extern const struct sar_setting_type sar_setting_choice;      /**< int, a position in `choices` */
extern const struct sar_setting_type sar_setting_switch;      /**< bool, off and on in turn in `choices` */
extern const struct sar_setting_type sar_setting_double;      /**< double from min to max */
extern const struct sar_setting_type sar_setting_u64;         /**< uint64_t from min to max */
extern const struct sar_setting_type sar_setting_u64_or_auto; /**< uint64_t, or "auto": SAR_U64_AUTO */
extern const struct sar_setting_type sar_setting_grain;       /**< int, a power of two, or SAR_AUTO */

#endif
