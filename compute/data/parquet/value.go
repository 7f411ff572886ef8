package parquet

import (
	"encoding/binary"
	"fmt"
)

// values decodes the n strings of a data page. body is a string so that they can share its memory.
func (r *reader) values(encoding int64, body string, n int64) error {
	if n == 0 {
		return nil
	}
	switch encoding {
	case plain:
		return r.plainValues(body, n)
	case plainDictionary, rleDictionary:
		return r.indexed(body, n)
	case deltaLength:
		lengths, rest, err := deltas(body, n)
		if err != nil {
			return err
		}
		return eachOfLengths(rest, lengths, func(_ int, s string) error { return r.emit(s, 1) })
	case deltaStrings:
		return r.prefixed(body, n)
	}
	return unsupported("encoding %d: write the column plain or with a dictionary", encoding)
}

// emit gives a value a number of times, which dataPage has charged for.
func (r *reader) emit(s string, times int64) error {
	if int64(len(s)) > 0 && times > r.text/int64(len(s)) {
		return fmt.Errorf("%w: %d strings of %d bytes", ErrTooLarge, times, len(s))
	}
	r.text -= int64(len(s)) * times
	for ; times > 0; times-- {
		if !r.visit(s) {
			return errEnough
		}
	}
	return nil
}

func (r *reader) plainValues(body string, n int64) error {
	err := eachPlain(body, func(s string) error {
		if n--; n < 0 {
			return malformed("more values than the header says")
		}
		return r.emit(s, 1)
	})
	if err == nil && n > 0 {
		err = malformed("%d values are missing", n)
	}
	return err
}

// eachPlain reads strings that each follow their length.
func eachPlain(body string, visit func(s string) error) error {
	for len(body) > 0 {
		if len(body) < lengthBytes {
			return malformed("a length is cut off")
		}
		n := binary.LittleEndian.Uint32([]byte(body[:lengthBytes]))
		body = body[lengthBytes:]
		if uint64(n) > uint64(len(body)) {
			return malformed("a string of %d bytes where %d are left", n, len(body))
		}
		if err := visit(body[:n]); err != nil {
			return err
		}
		body = body[n:]
	}
	return nil
}

// indexed reads numbers of entries of the dictionary.
func (r *reader) indexed(body string, n int64) error {
	if len(body) == 0 || body[0] > 32 {
		return malformed("the width of the indexes is missing or above 32")
	}
	return eachHybrid([]byte(body[1:]), int(body[0]), n, func(index uint32, times int64) error {
		if uint64(index) >= uint64(len(r.dict)) {
			return malformed("entry %d of a dictionary of %d", index, len(r.dict))
		}
		return r.emit(r.dict[index], times)
	})
}

// eachHybrid reads n integers of a number of bits each from runs: of one value, or of values packed in groups of eight.
func eachHybrid(data []byte, width int, n int64, visit func(value uint32, times int64) error) error {
	for n > 0 {
		head, k := binary.Uvarint(data)
		if k <= 0 {
			return malformed("a run is missing, of %d values", n)
		}
		data = data[k:]
		if head&1 == 0 {
			size := (width + 7) / 8
			if len(data) < size || head == 0 {
				return malformed("a run is cut off or empty")
			}
			times := int64(min(head>>1, uint64(n)))
			if err := visit(uint32(bitsAt(data[:size], 0, width)), times); err != nil {
				return err
			}
			data, n = data[size:], n-times
			continue
		}
		groups := head >> 1 // of eight values, width bytes each
		if groups == 0 || groups > uint64(n+7)/8 || groups*uint64(width) > uint64(len(data)) {
			return malformed("%d groups of packed values, of %d values and in %d bytes", groups, n, len(data))
		}
		count := int(min(int64(groups)*8, n))
		for i := range count {
			if err := visit(uint32(bitsAt(data, i*width, width)), 1); err != nil {
				return err
			}
		}
		data, n = data[int(groups)*width:], n-int64(count)
	}
	return nil
}

// bitsAt returns the bits of data from position at on, at most 64 and least significant first.
func bitsAt(data []byte, at, width int) uint64 {
	x := uint64(0)
	for got := 0; got < width; {
		skip := (at + got) % 8
		x |= uint64(data[(at+got)/8]>>skip) << got
		got += 8 - skip
	}
	if width < 64 {
		x &= 1<<width - 1
	}
	return x
}

// eachOfLengths cuts strings of the given lengths, which must make up all of body.
func eachOfLengths(body string, lengths []int64, visit func(i int, s string) error) error {
	for i, n := range lengths {
		if n < 0 || n > int64(len(body)) {
			return malformed("a string of %d bytes where %d are left", n, len(body))
		}
		if err := visit(i, body[:n]); err != nil {
			return err
		}
		body = body[n:]
	}
	if len(body) > 0 {
		return malformed("%d bytes are left over", len(body))
	}
	return nil
}

// prefixed reads strings of which a part is that of the one before.
func (r *reader) prefixed(body string, n int64) error {
	prefixes, rest, err := deltas(body, n)
	if err != nil {
		return err
	}
	lengths, rest, err := deltas(rest, n)
	if err != nil {
		return err
	}
	last := ""
	return eachOfLengths(rest, lengths, func(i int, suffix string) error {
		if prefixes[i] < 0 || prefixes[i] > int64(len(last)) {
			return malformed("a prefix of %d bytes of a string of %d", prefixes[i], len(last))
		}
		if int64(len(last)+len(suffix)) > r.text { // before it is made
			return fmt.Errorf("%w: a string of %d bytes", ErrTooLarge, len(last)+len(suffix))
		}
		last = last[:prefixes[i]] + suffix
		return r.emit(last, 1)
	})
}

// deltas reads n integers in DELTA_BINARY_PACKED from the front of body: blocks of a least difference and miniblocks of
// packed differences above it.
func deltas(body string, n int64) (values []int64, rest string, err error) {
	data := []byte(body)
	at := 0
	uvarint := func() uint64 {
		x, k := binary.Uvarint(data[at:])
		if k <= 0 {
			err = malformed("a delta is cut off")
			return 0
		}
		at += k
		return x
	}
	block, minis, count := uvarint(), uvarint(), uvarint()
	last := unzigzag(uvarint())
	if err != nil {
		return nil, "", err
	}
	if minis == 0 || block == 0 || block > 1<<20 || block%minis != 0 || block/minis%8 != 0 || count != uint64(n) {
		return nil, "", malformed("%d deltas in blocks of %d and %d miniblocks, for %d values", count, block, minis, n)
	}
	values = append(values, last)
	for int64(len(values)) < n {
		least := unzigzag(uvarint())
		if err != nil || uint64(len(data)-at) < minis {
			return nil, "", malformed("a block of deltas is cut off")
		}
		widths := data[at : at+int(minis)]
		at += int(minis)
		for _, width := range widths {
			each := int(block / minis)
			if int64(len(values)) == n {
				break // of the last block, only what is needed is there
			}
			if size := each / 8 * int(width); width > 64 || size > len(data)-at {
				return nil, "", malformed("a miniblock of width %d is cut off", width)
			}
			for i := 0; i < each && int64(len(values)) < n; i++ {
				last += least + int64(bitsAt(data[at:], i*int(width), int(width)))
				values = append(values, last)
			}
			at += each / 8 * int(width)
		}
	}
	return values, body[at:], nil
}
