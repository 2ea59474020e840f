/* SPDX-License-Identifier: BSD-3-Clause */
/* Texts as word numbers, by a hash table: O(bytes). */

#include "bench/lib/text.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/lib/base.h"

/* A word and its number. The entry is empty if `word` is NULL. */
struct entry {
    const char *word;
    size_t length;
    uint32_t number;
};

/* Open addressing. The table size is a power of two, at least twice the number of words. */
struct dictionary {
    struct entry *entry;
    size_t size, used;
};

/* Returns the entry of a word, or the empty entry where the word belongs. */
static struct entry *place_of(const struct dictionary *dictionary, const char *word, size_t length)
{
    uint64_t hash = UINT64_C(0xcbf29ce484222325); /* FNV-1a */
    size_t at;

    for (size_t i = 0; i < length; i++)
        hash = (hash ^ (unsigned char)word[i]) * UINT64_C(0x100000001b3);
    at = (size_t)perf_mix(hash) & (dictionary->size - 1);
    while (dictionary->entry[at].word != NULL &&
           (dictionary->entry[at].length != length || memcmp(dictionary->entry[at].word, word, length) != 0))
        at = (at + 1) & (dictionary->size - 1);
    return &dictionary->entry[at];
}

static void grow(struct dictionary *dictionary)
{
    struct dictionary larger = { NULL, dictionary->size * 2, dictionary->used };

    larger.entry = perf_alloc(larger.size, sizeof *larger.entry);
    for (size_t i = 0; i < dictionary->size; i++) {
        const struct entry *old = &dictionary->entry[i];
        if (old->word != NULL)
            *place_of(&larger, old->word, old->length) = *old;
    }
    free(dictionary->entry);
    *dictionary = larger;
}

static uint32_t number_of(struct dictionary *dictionary, const char *word, size_t length)
{
    struct entry *entry = place_of(dictionary, word, length);
    uint32_t number;

    if (entry->word != NULL)
        return entry->number;
    number = (uint32_t)dictionary->used++;
    *entry = (struct entry){ word, length, number };
    if (dictionary->used * 2 > dictionary->size)
        grow(dictionary);
    return number;
}

/* Moves *at to the next word. Returns the length of the word, or 0 at the end. */
static size_t next_word(const char *content, size_t bytes, size_t *at)
{
    size_t end;

    while (*at < bytes && isspace((unsigned char)content[*at]))
        ++*at;
    for (end = *at; end < bytes && !isspace((unsigned char)content[end]); end++)
        ;
    return end - *at;
}

static void number_words(struct perf_text *text, const char *content, size_t bytes)
{
    enum { FIRST_SIZE = 4096 };
    struct dictionary dictionary = { perf_alloc(FIRST_SIZE, sizeof(struct entry)), FIRST_SIZE, 0 };
    size_t length;

    text->tokens = 0;
    for (size_t at = 0; (length = next_word(content, bytes, &at)) > 0; at += length)
        text->tokens++;
    text->token = perf_alloc(text->tokens, sizeof *text->token);
    text->tokens = 0;
    for (size_t at = 0; (length = next_word(content, bytes, &at)) > 0; at += length)
        text->token[text->tokens++] = number_of(&dictionary, content + at, length);
    text->words = dictionary.used;
    free(dictionary.entry);
}

bool perf_text_load(struct perf_text *text, const char *path, size_t least, const struct perf_world *world)
{
    size_t bytes;
    char *content = perf_file_load(path, &bytes, world);

    if (content == NULL)
        return false;
    number_words(text, content, bytes);
    free(content);
    if (text->tokens >= least)
        return true;
    if (world->rank == 0)
        fprintf(stderr, "mpix_sparse_perf: '%s' has %zu words, and %d batches need %zu\n", path, text->tokens,
                world->ranks, least);
    perf_text_free(text);
    return false;
}

void perf_text_free(struct perf_text *text)
{
    free(text->token);
    text->token = NULL;
    text->tokens = text->words = 0;
}
