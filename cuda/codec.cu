/* SPDX-License-Identifier: BSD-3-Clause */
/* Encoding and decoding of payloads on a device, in the layouts of wire/coo.c, wire/hash_bitmap.c and
 * wire/elias_fano.c.
 *
 *     coo           copies both arrays; decoding checks the indices, one thread per element
 *     hash_bitmap   encoding copies the values and sets one bit per element; decoding is one scan that counts
 *                   and lists the bits. A bitmap that does not begin and end at a word is copied to aligned
 *                   memory
 *     elias_fano    encoding sets the high bit and the low bits of each element in zeroed words; decoding is
 *                   one scan over the high bits: the rank of a bit is the number of its element, which gives
 *                   the position of the low bits. Both arrays of bits are unaligned in the payload, so the
 *                   kernels use aligned copies
 *
 *     values        values alone: copies them; the indices stay with the receiver
 *
 * A payload may be corrupt: a decoder writes nothing outside the index array, and sets a flag. */

#include "cuda/launch.h"

#include "cuda/parallel.cuh"
#include "hash/murmur3.h"
#include "wire/elias_fano.h"

/* The bitmap of a payload: one bit for each of nnz elements, whose indices must be below slots. */
struct sar_encoded_bits {
    const uint32_t *bits;
    size_t words;
    unsigned long long nnz;
    uint64_t slots;
    uint32_t *corrupt;

    /* index, or 0 and the flag set if the index is out of range. */
    SAR_HOST_DEVICE uint64_t checked(uint64_t index) const
    {
        if (index < slots)
            return index;
        sar_flag_set(corrupt);
        return 0;
    }

    /* Set the flag at the last word unless the bitmap has nnz bits; rank is the number of bits before word
     * w. */
    SAR_HOST_DEVICE void count(size_t w, unsigned long long rank) const
    {
        if (w + 1 == words && rank + sar_bits_popcount(bits[w]) != nnz)
            sar_flag_set(corrupt);
    }
};

/* Lists the bits of word w of a bitmap of slots as indices. Host twin: sar_bitmap_decode. */
template <class Index> struct sar_decode_slots_functor {
    sar_encoded_bits coded;
    Index *index;

    SAR_HOST_DEVICE void operator()(size_t w, unsigned long long rank) const
    {
        coded.count(w, rank);
        for (uint32_t rest = coded.bits[w]; rest != 0 && rank < coded.nnz; rest &= rest - 1, rank++)
            index[rank] = (Index)coded.checked((uint64_t)w * SAR_WORD_BITS + sar_bits_lowest(rest));
    }
};

/* An array of numbers of `length` bits, at most 56, without gaps. Two words behind the array must be
 * readable. Host twin: wire/elias_fano.c. */
struct sar_packed_bits {
    uint32_t *word;
    unsigned length;

    SAR_HOST_DEVICE uint64_t mask() const
    {
        return ((uint64_t)1 << length) - 1;
    }

    SAR_HOST_DEVICE uint64_t get(uint64_t i) const
    {
        uint64_t at = i * length;
        const uint32_t *from = word + at / SAR_WORD_BITS;
        unsigned skip = at % SAR_WORD_BITS;
        uint64_t bits = (from[0] | (uint64_t)from[1] << SAR_WORD_BITS) >> skip;
        if (skip + length > 2 * SAR_WORD_BITS)
            bits |= (uint64_t)from[2] << (2 * SAR_WORD_BITS - skip);
        return bits & mask();
    }

    /* Write number i; its bits must be 0 before. */
    SAR_HOST_DEVICE void put(uint64_t i, uint64_t number) const
    {
        uint64_t at = i * length, rest = number & mask();
        unsigned skip = at % SAR_WORD_BITS;
        sar_bits_or(&word[at / SAR_WORD_BITS], (uint32_t)(rest << skip));
        for (rest >>= SAR_WORD_BITS - skip, at += SAR_WORD_BITS - skip; rest != 0;
             rest >>= SAR_WORD_BITS, at += SAR_WORD_BITS)
            sar_bits_or(&word[at / SAR_WORD_BITS], (uint32_t)rest);
    }
};

/* Writes the high bit and the low bits of element i. Host twin: wire/elias_fano.c. */
template <class Index> struct sar_ef_encode_functor {
    const Index *index;
    sar_packed_bits low;
    uint32_t *high;

    SAR_HOST_DEVICE void operator()(size_t i) const
    {
        uint64_t at = index[i];
        sar_bits_set(high, (at >> low.length) + i);
        if (low.length != 0)
            low.put(i, at);
    }
};

/* Decodes the elements whose high bits are in word w. Host twin: wire/elias_fano.c. */
template <class Index> struct sar_ef_decode_functor {
    sar_encoded_bits coded;
    sar_packed_bits low;
    Index *index;

    SAR_HOST_DEVICE void operator()(size_t w, unsigned long long rank) const
    {
        coded.count(w, rank);
        for (uint32_t rest = coded.bits[w]; rest != 0 && rank < coded.nnz; rest &= rest - 1, rank++) {
            uint64_t high = (uint64_t)w * SAR_WORD_BITS + sar_bits_lowest(rest) - rank;
            uint64_t at = high << low.length | (low.length == 0 ? 0 : low.get(rank));
            index[rank] = (Index)coded.checked(at);
        }
    }
};

/* Copies index i of a payload, or writes 0 and sets the flag if it is out of range. */
template <class Index> struct sar_decode_indices_functor {
    const Index *from;
    uint64_t slots;
    Index *to;
    uint32_t *corrupt;

    SAR_HOST_DEVICE void operator()(size_t i) const
    {
        bool valid = from[i] < slots;
        to[i] = valid ? from[i] : 0;
        if (!valid)
            sar_flag_set(corrupt);
    }
};

/* Sets the flag unless index i is above index i - 1. Host twin: sar_indices_are_sorted. */
template <class Index> struct sar_is_sorted_functor {
    const Index *index;
    uint32_t *corrupt;

    SAR_HOST_DEVICE void operator()(size_t i) const
    {
        if (i > 0 && index[i] <= index[i - 1])
            sar_flag_set(corrupt);
    }
};

/* Sets the flag if value i is -0.0. Host twin: sar_dense_has_negative_zero. */
template <class Bits> struct sar_find_minus_zero_functor {
    const Bits *value;
    uint32_t *found;

    SAR_HOST_DEVICE void operator()(size_t i) const
    {
        if (value[i] == (Bits)1 << (8 * sizeof(Bits) - 1))
            sar_flag_set(found);
    }
};

/* Converts slot i of a part to an index. Host twin: sar_partition_restore_indices. */
template <class Index> struct sar_slots_to_indices_functor {
    struct sar_partition_map map;
    uint32_t part;
    const uint32_t *slot;
    Index *index;

    SAR_HOST_DEVICE void operator()(size_t i) const
    {
        index[i] = (Index)sar_partition_map_index(&map, part, slot[i]);
    }
};

enum { HASH_THREADS = 4096 }; /* of an index list; each adds its hashes before the sum of all */

/* Adds the hashes of every HASH_THREADS-th index. Host twin: sar_msg_index_hash. */
struct sar_hash_indices_functor {
    const uint32_t *index;
    size_t nnz;
    uint32_t *hash;

    SAR_HOST_DEVICE void operator()(size_t thread) const
    {
        uint32_t sum = thread == 0 ? (uint32_t)nnz : 0;
        for (size_t i = thread; i < nnz; i += HASH_THREADS)
            sum += sar_murmur3(index[i], (uint32_t)i);
        sar_word_add(hash, sum);
    }
};

/* Sets the flag unless the hash is the expected one. */
struct sar_expect_hash_functor {
    const uint32_t *hash;
    uint32_t expected;
    uint32_t *corrupt;

    SAR_HOST_DEVICE void operator()(size_t) const
    {
        if (*hash != expected)
            sar_flag_set(corrupt);
    }
};

/* The bitmap of a payload, and its words: the payload's own if they are aligned, else those of a copy. */
struct bitmap_words {
    char *payload_bits;
    size_t bytes, words;
    sar_scoped_alloc copy;
    uint32_t *bits = NULL;

    bitmap_words(const struct sar_wire_layout *layout, const void *payload, size_t nnz, cudaStream_t stream)
        : payload_bits((char *)payload + nnz * layout->element_size),
          bytes((size_t)sar_bitmap_bytes(layout->slots)), words(sar_bits_words(layout->slots)), copy(stream)
    {
    }

    enum sar_status open()
    {
        if (((uintptr_t)payload_bits | bytes) % sizeof(uint32_t) != 0)
            SAR_TRY(copy.alloc(words * sizeof(uint32_t)));
        bits = copy.memory == NULL ? (uint32_t *)payload_bits : copy.as<uint32_t>();
        return SAR_OK;
    }

    enum sar_status clear() const
    {
        return sar_cuda_status(cudaMemsetAsync(bits, 0, words * sizeof(uint32_t), copy.stream));
    }

    enum sar_status read() const
    {
        if (copy.memory == NULL)
            return SAR_OK;
        SAR_TRY(clear());
        return sar_copy_async(bits, payload_bits, bytes, copy.stream);
    }

    enum sar_status write() const
    {
        return copy.memory == NULL ? SAR_OK : sar_copy_async(payload_bits, bits, bytes, copy.stream);
    }
};

/* Aligned copies of a payload's low and high bits, which follow its values. */
struct ef_bitmaps {
    struct sar_elias_fano_sizes sizes; /* in bytes */
    char *payload;
    cudaStream_t stream;
    sar_scoped_alloc low, high;

    ef_bitmaps(const struct sar_wire_layout *layout, const void *payload, size_t nnz, cudaStream_t stream)
        : sizes(sar_elias_fano_sizes_make(layout, nnz)), payload((char *)payload), stream(stream),
          low(stream), high(stream)
    {
    }

    size_t high_words() const
    {
        return sar_bits_words(8 * sizes.high);
    }

    /* Allocate both, zeroed. The low bits need two words more, which sar_packed_bits reads. */
    enum sar_status open()
    {
        size_t low_bytes = (sar_bits_words(8 * sizes.low) + 2) * sizeof(uint32_t);
        SAR_TRY(low.alloc(low_bytes));
        SAR_TRY(high.alloc(high_words() * sizeof(uint32_t)));
        SAR_TRY(sar_cuda_status(cudaMemsetAsync(low.memory, 0, low_bytes, stream)));
        return sar_cuda_status(cudaMemsetAsync(high.memory, 0, high_words() * sizeof(uint32_t), stream));
    }

    enum sar_status read() const
    {
        SAR_TRY(sar_copy_async(low.memory, payload + sizes.values, sizes.low, stream));
        return sar_copy_async(high.memory, payload + sizes.values + sizes.low, sizes.high, stream);
    }

    enum sar_status write() const
    {
        SAR_TRY(sar_copy_async(payload + sizes.values, low.memory, sizes.low, stream));
        return sar_copy_async(payload + sizes.values + sizes.low, high.memory, sizes.high, stream);
    }

    sar_packed_bits low_bits() const
    {
        return { low.as<uint32_t>(), sizes.low_bits };
    }
};

/* The operations on a vector with indices of type Index. */
template <class Index> struct codec_kernels {
    struct sar_wire_layout layout = {};
    cudaStream_t stream;

    explicit codec_kernels(const struct sar_device_vec *vector) : stream((cudaStream_t)vector->stream)
    {
        layout.slots = vector->desc->count;
        layout.element_size = vector->desc->element_size;
        layout.row_len = vector->desc->row_len;
        layout.index_size = sizeof(Index);
    }

    /* The two arrays of a payload of the format coo. */
    struct sar_spvec coo_arrays(void *payload, size_t nnz) const
    {
        bool values_first = layout.element_size % sizeof(Index) == 0;
        char *index = (char *)payload + (values_first ? nnz * layout.element_size : 0);
        char *value = (char *)payload + (values_first ? 0 : nnz * sizeof(Index));
        return { index, value, nnz };
    }

    enum sar_status encode_coo(const struct sar_spvec *vec, void *payload) const
    {
        struct sar_spvec to = coo_arrays(payload, vec->nnz);
        SAR_TRY(sar_copy_async(to.index, vec->index, vec->nnz * sizeof(Index), stream));
        return sar_copy_async(to.value, vec->value, vec->nnz * layout.element_size, stream);
    }

    enum sar_status decode_coo(void *payload, struct sar_spvec *vec, uint32_t *corrupt) const
    {
        struct sar_spvec from = coo_arrays(payload, vec->nnz);
        const Index *index = (const Index *)from.index;
        sar_decode_indices_functor<Index> functor = { index, layout.slots, (Index *)vec->index, corrupt };
        vec->value = from.value;
        SAR_TRY(for_each(vec->nnz, functor, stream));
        return for_each(vec->nnz, sar_is_sorted_functor<Index>{ index, corrupt }, stream);
    }

    enum sar_status encode_bitmap(const struct sar_spvec *vec, void *payload) const
    {
        struct bitmap_words bitmap(&layout, payload, vec->nnz, stream);
        if (layout.slots == 0)
            return SAR_OK;
        SAR_TRY(sar_copy_async(payload, vec->value, vec->nnz * layout.element_size, stream));
        SAR_TRY(bitmap.open());
        SAR_TRY(bitmap.clear());
        sar_set_bits_functor<Index> functor = { (const Index *)vec->index, bitmap.bits };
        SAR_TRY(for_each(vec->nnz, functor, stream));
        return bitmap.write();
    }

    enum sar_status decode_bitmap(const void *payload, const struct sar_spvec *vec, uint32_t *corrupt) const
    {
        struct bitmap_words bitmap(&layout, payload, vec->nnz, stream);
        if (layout.slots == 0)
            return SAR_OK;
        SAR_TRY(bitmap.open());
        SAR_TRY(bitmap.read());
        SAR_TRY(sar_cuda_status(cudaMemsetAsync(vec->index, 0, vec->nnz * sizeof(Index), stream)));
        sar_decode_slots_functor<Index> functor = {
            { bitmap.bits, bitmap.words, vec->nnz, layout.slots, corrupt }, (Index *)vec->index
        };
        return rank_words(bitmap.bits, bitmap.words, functor, stream);
    }

    enum sar_status encode_elias_fano(const struct sar_spvec *vec, void *payload) const
    {
        struct ef_bitmaps bitmaps(&layout, payload, vec->nnz, stream);
        if (vec->nnz == 0)
            return SAR_OK;
        SAR_TRY(bitmaps.open());
        SAR_TRY(sar_copy_async(payload, vec->value, bitmaps.sizes.values, stream));
        sar_ef_encode_functor<Index> functor = { (const Index *)vec->index, bitmaps.low_bits(),
                                                 bitmaps.high.as<uint32_t>() };
        SAR_TRY(for_each(vec->nnz, functor, stream));
        return bitmaps.write();
    }

    enum sar_status decode_elias_fano(const void *payload, const struct sar_spvec *vec,
                                      uint32_t *corrupt) const
    {
        struct ef_bitmaps bitmaps(&layout, payload, vec->nnz, stream);
        Index *index = (Index *)vec->index;
        if (vec->nnz == 0)
            return SAR_OK;
        SAR_TRY(bitmaps.open());
        SAR_TRY(bitmaps.read());
        SAR_TRY(sar_cuda_status(cudaMemsetAsync(index, 0, vec->nnz * sizeof(Index), stream)));
        uint32_t *high = bitmaps.high.as<uint32_t>();
        sar_ef_decode_functor<Index> functor = {
            { high, bitmaps.high_words(), vec->nnz, layout.slots, corrupt }, bitmaps.low_bits(), index
        };
        SAR_TRY(rank_words(high, bitmaps.high_words(), functor, stream));
        return for_each(vec->nnz, sar_is_sorted_functor<Index>{ index, corrupt }, stream);
    }

    enum sar_status encode(const struct sar_spvec *vec, const struct sar_encoded *payload) const
    {
        switch (payload->codec_id) {
        case SAR_CODEC_COO: return encode_coo(vec, payload->memory);
        case SAR_CODEC_ELIAS_FANO: return encode_elias_fano(vec, payload->memory);
        case SAR_CODEC_HASH_BITMAP: return encode_bitmap(vec, payload->memory);
        case SAR_CODEC_VALUES: return sar_copy_async(payload->memory, vec->value, payload->bytes, stream);
        default: return SAR_UNSUPPORTED;
        }
    }

    enum sar_status decode(const struct sar_encoded *payload, struct sar_spvec *vec, uint32_t *corrupt) const
    {
        vec->value = payload->memory;
        switch (payload->codec_id) {
        case SAR_CODEC_COO: return decode_coo(payload->memory, vec, corrupt);
        case SAR_CODEC_ELIAS_FANO: return decode_elias_fano(payload->memory, vec, corrupt);
        case SAR_CODEC_HASH_BITMAP: return decode_bitmap(payload->memory, vec, corrupt);
        case SAR_CODEC_VALUES: return SAR_OK;
        default: return SAR_UNSUPPORTED;
        }
    }

    enum sar_status slots_to_indices(const struct sar_map_part *part, const struct sar_spvec *vec,
                                     void *index) const
    {
        sar_slots_to_indices_functor<Index> functor = { part->map, part->part, (const uint32_t *)vec->index,
                                                        (Index *)index };
        return for_each(vec->nnz, functor, stream);
    }
};

template <class Action>
static enum sar_status dispatch_index(const struct sar_device_vec *vector, const Action &action)
{
    if (vector->desc->index_size == 4)
        return action(codec_kernels<uint32_t>(vector));
    return action(codec_kernels<uint64_t>(vector));
}

enum sar_status sar_cuda_encode(const struct sar_device_vec *vector, const struct sar_spvec *vec,
                                const struct sar_encoded *payload)
{
    return dispatch_index(vector, [=](auto kernels) { return kernels.encode(vec, payload); });
}

enum sar_status sar_cuda_decode(const struct sar_device_vec *vector, const struct sar_encoded *payload,
                                struct sar_spvec *vec, struct sar_device_flags *flags)
{
    return dispatch_index(vector,
                          [=](auto kernels) { return kernels.decode(payload, vec, &flags->corrupt); });
}

enum sar_status sar_cuda_slots_to_indices(const struct sar_device_vec *vector,
                                          const struct sar_map_part *part, const struct sar_spvec *vec,
                                          void *index)
{
    return dispatch_index(vector, [=](auto kernels) { return kernels.slots_to_indices(part, vec, index); });
}

template <class Bits>
static enum sar_status find_minus_zero(const struct sar_device_vec *vector, const struct sar_spvec *vec,
                                       uint32_t *found)
{
    sar_find_minus_zero_functor<Bits> functor = { (const Bits *)vec->value, found };
    return for_each(vec->nnz * vector->desc->row_len, functor, (cudaStream_t)vector->stream);
}

enum sar_status sar_cuda_find_minus_zero(const struct sar_device_vec *vector, const struct sar_spvec *vec,
                                         struct sar_device_flags *flags)
{
    switch (vector->desc->dtype) {
    case SAR_FLOAT: return find_minus_zero<uint32_t>(vector, vec, &flags->minus_zero);
    case SAR_DOUBLE: return find_minus_zero<uint64_t>(vector, vec, &flags->minus_zero);
    case SAR_BF16:
    case SAR_FP16: return find_minus_zero<uint16_t>(vector, vec, &flags->minus_zero);
    default: return SAR_OK;
    }
}

enum sar_status sar_cuda_hash_indices(const struct sar_device_vec *vector, const struct sar_spvec *vec,
                                      uint32_t *hash)
{
    cudaStream_t stream = (cudaStream_t)vector->stream;
    sar_hash_indices_functor functor = { (const uint32_t *)vec->index, vec->nnz, hash };
    SAR_TRY(sar_cuda_status(cudaMemsetAsync(hash, 0, sizeof *hash, stream)));
    return for_each(vec->nnz < HASH_THREADS ? vec->nnz : (size_t)HASH_THREADS, functor, stream);
}

enum sar_status sar_cuda_expect_hash(const struct sar_device_vec *vector, const uint32_t *hash,
                                     uint32_t expected, struct sar_device_flags *flags)
{
    sar_expect_hash_functor functor = { hash, expected, &flags->corrupt };
    return for_each(1, functor, (cudaStream_t)vector->stream);
}
