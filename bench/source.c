/* SPDX-License-Identifier: BSD-3-Clause */
#include "source.h"

#include <stdio.h>
#include <string.h>

bool perf_source_load(struct perf_source *source, struct perf_options *options, size_t least,
                      const struct perf_world *world)
{
    const struct perf_content *named = &options->content;

    memset(source, 0, sizeof *source);
    source->kind = named->kind;
    switch (named->kind) {
    case PERF_MODEL: source->model = perf_model_get(named->model); break;
    case PERF_TEXT_FILE: return perf_text_load(&source->text, named->path, least, world);
    case PERF_TRACE_FILE:
        if (!perf_replay_load(&source->replay, named->path, world))
            return false;
        options->row = source->replay.row;
    }
    return true;
}

void perf_source_free(struct perf_source *source)
{
    perf_text_free(&source->text);
    perf_replay_free(&source->replay);
}

bool perf_source_size(const struct perf_source *source, struct perf_case *c)
{
    switch (source->kind) {
    case PERF_MODEL:
        perf_case_size(c, (size_t)source->model->count / (size_t)c->options->scale / c->row,
                       source->model->density);
        return true;
    case PERF_TEXT_FILE: perf_case_size(c, source->text.words, 0); return true;
    case PERF_TRACE_FILE: perf_case_size(c, source->replay.count, 0); return true;
    default: return false;
    }
}

void perf_source_name(const struct perf_content *content, char *name, size_t room)
{
    static const char *const kinds[] = {
        [PERF_RANDOM] = "random", [PERF_MODEL] = "", [PERF_TEXT_FILE] = "text:", [PERF_TRACE_FILE] = "trace:"
    };

    snprintf(name, room, "%s%s", kinds[content->kind],
             content->kind == PERF_MODEL ? perf_model_name(content->model) : content->path);
}
