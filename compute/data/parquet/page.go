package parquet

import (
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"

	"github.com/klauspost/compress/snappy"
	"github.com/klauspost/compress/zstd"
)

// Enumerations of parquet.thrift.
const (
	dataPage       = 0
	indexPage      = 1
	dictionaryPage = 2
	dataPageV2     = 3

	plain           = 0
	plainDictionary = 2
	rle             = 3
	deltaLength     = 6
	deltaStrings    = 7
	rleDictionary   = 8

	codecNone   = 0
	codecSnappy = 1
	codecGzip   = 2
	codecZstd   = 6
)

const (
	rowBytes      = 16        // that a row costs besides its text
	maxPage       = 1 << 30   // bytes, unpacked
	maxZstdWindow = 128 << 20 // bytes

	lengthBytes = 4 // of the length before a string or levels
	levelBits   = 1 // of a definition level: a value is there or not
)

// reader gives the values of one column.
type reader struct {
	data     io.ReaderAt
	size     int64 // of data
	optional bool
	visit    func(text string) bool
	text     int64 // bytes that may still be given
	unpacked int64 // and unpacked
	packed   int64 // and read: no byte of the file is in two pages
	dict     []string
	hasDict  bool
}

// page is a header and the bytes that follow it.
type page struct {
	kind, unpackedSize, size, crc    int64
	values, encoding, levelEncoding  int64
	definitionBytes, repetitionBytes int64 // of a dataPageV2, which come first and are not packed
	packed, hasCRC                   bool
	body                             []byte
}

// chunk reads the pages of a column of a row group.
func (r *reader) chunk(c *chunk) error {
	switch {
	case c.elsewhere:
		return unsupported("the column is encrypted or in another file")
	case c.kind != typeByteArray:
		return malformed("the column has not the type of the schema")
	case c.start < 0 || c.size < 0 || c.start > r.size || c.size > r.size-c.start:
		return malformed("the column is %d bytes from %d on, in a file of %d", c.size, c.start, r.size)
	}
	if r.packed -= c.size; r.packed < 0 {
		return malformed("row groups overlap at byte %d", c.start)
	}
	r.dict, r.hasDict = nil, false
	region := make([]byte, c.size)
	if _, err := r.data.ReadAt(region, c.start); err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	for at, values := 0, int64(0); values < c.values; {
		place := c.start + int64(at)
		p, n, err := readPage(region[at:])
		if err == nil {
			err = r.page(p, c.codec)
		}
		if err != nil {
			return fmt.Errorf("page at byte %d: %w", place, err)
		}
		at += n
		if values += p.values; values > c.values {
			return malformed("page at byte %d: more than the %d values of the column", place, c.values)
		}
	}
	return nil
}

// readPage reads a header and its page from the front of data, n bytes in all.
func readPage(data []byte) (p *page, n int, err error) {
	p = &page{kind: absent, packed: true}
	t := &thrift{data: data}
	t.fields(func(id int64, kind byte) bool {
		switch id {
		case 1:
			return t.int(kind, &p.kind)
		case 2:
			return t.int(kind, &p.unpackedSize)
		case 3:
			return t.int(kind, &p.size)
		case 4:
			p.hasCRC = true
			return t.int(kind, &p.crc)
		case 5:
			return t.structure(kind, func(id int64, kind byte) bool { return p.readDataHeader(t, id, kind) })
		case 7:
			return t.structure(kind, func(id int64, kind byte) bool {
				return id == 2 && t.int(kind, &p.encoding)
			})
		case 8:
			return t.structure(kind, func(id int64, kind byte) bool { return p.readDataHeaderV2(t, id, kind) })
		}
		return false
	})
	if err := t.err(); err != nil {
		return nil, 0, malformed("the header is %v", err)
	}
	left := int64(len(data) - t.at)
	if p.size < 0 || p.size > left || p.unpackedSize < 0 || p.unpackedSize > maxPage || p.values < 0 {
		return nil, 0, malformed("a page of %d bytes, %d unpacked and %d values where %d bytes are left", p.size,
			p.unpackedSize, p.values, left)
	}
	p.body = data[t.at : t.at+int(p.size)]
	if p.hasCRC && crc32.ChecksumIEEE(p.body) != uint32(p.crc) {
		return nil, 0, malformed("the checksum does not match")
	}
	return p, t.at + int(p.size), nil
}

func (p *page) readDataHeader(t *thrift, id int64, kind byte) bool {
	switch id {
	case 1:
		return t.int(kind, &p.values)
	case 2:
		return t.int(kind, &p.encoding)
	case 3:
		return t.int(kind, &p.levelEncoding)
	}
	return false
}

func (p *page) readDataHeaderV2(t *thrift, id int64, kind byte) bool {
	switch id {
	case 1:
		return t.int(kind, &p.values)
	case 4:
		return t.int(kind, &p.encoding)
	case 5:
		return t.int(kind, &p.definitionBytes)
	case 6:
		return t.int(kind, &p.repetitionBytes)
	case 7:
		p.packed = kind == thriftTrue
	}
	return false
}

func (r *reader) page(p *page, codec int64) error {
	switch p.kind {
	case dataPage, dataPageV2:
		return r.dataPage(p, codec)
	case dictionaryPage:
		return r.dictionary(p, codec)
	case indexPage:
		return nil
	}
	return unsupported("a page of kind %d", p.kind)
}

func (r *reader) dictionary(p *page, codec int64) error {
	if r.hasDict || p.encoding != plain && p.encoding != plainDictionary {
		return malformed("a second dictionary, or one in encoding %d", p.encoding)
	}
	body, err := r.unpack(p.body, codec, p.unpackedSize)
	if err != nil {
		return err
	}
	r.hasDict = true
	return eachPlain(string(body), func(s string) error {
		r.dict = append(r.dict, s)
		return nil
	})
}

// dataPage reads the definition levels, which say which rows have a value, and then the values.
func (r *reader) dataPage(p *page, codec int64) error {
	if p.values > r.text/rowBytes {
		return fmt.Errorf("%w: %d rows", ErrTooLarge, p.values)
	}
	r.text -= p.values * rowBytes
	levels, values, err := r.split(p, codec)
	if err != nil {
		return err
	}
	present := p.values
	if r.optional {
		present = 0
		err := eachHybrid(levels, levelBits, p.values, func(level uint32, times int64) error {
			present += int64(level) * times
			return nil
		})
		if err != nil {
			return fmt.Errorf("definition levels: %w", err)
		}
	}
	return r.values(p.encoding, string(values), present)
}

// split returns the two parts of a data page, unpacked.
func (r *reader) split(p *page, codec int64) (levels, values []byte, err error) {
	if p.kind == dataPage {
		if r.optional && p.levelEncoding != rle {
			return nil, nil, unsupported("definition levels in encoding %d", p.levelEncoding)
		}
		body, err := r.unpack(p.body, codec, p.unpackedSize)
		if err != nil || !r.optional {
			return nil, body, err
		}
		if len(body) < lengthBytes || uint64(binary.LittleEndian.Uint32(body)) > uint64(len(body)-lengthBytes) {
			return nil, nil, malformed("the definition levels are cut off")
		}
		n := lengthBytes + int(binary.LittleEndian.Uint32(body))
		return body[lengthBytes:n], body[n:], nil
	}
	n := p.definitionBytes
	if p.repetitionBytes != 0 || n < 0 || n > p.size || n > p.unpackedSize {
		return nil, nil, malformed("%d bytes of definition and %d of repetition levels", n, p.repetitionBytes)
	}
	levels, values = p.body[:n], p.body[n:]
	if !p.packed {
		codec = codecNone
	}
	values, err = r.unpack(values, codec, p.unpackedSize-n)
	return levels, values, err
}

// unpack returns the size bytes that were packed.
func (r *reader) unpack(packed []byte, codec, size int64) (out []byte, err error) {
	if size > r.unpacked {
		return nil, fmt.Errorf("%w: %d bytes unpacked", ErrTooLarge, size)
	}
	r.unpacked -= size
	switch codec {
	case codecNone:
		out = packed
	case codecSnappy:
		n, badLength := snappy.DecodedLen(packed)
		if badLength != nil || int64(n) != size {
			return nil, malformed("snappy: another size than the %d bytes of the header", size)
		}
		out, err = snappy.Decode(nil, packed)
	case codecGzip:
		var z *gzip.Reader
		if z, err = gzip.NewReader(bytes.NewReader(packed)); err == nil {
			out, err = io.ReadAll(io.LimitReader(z, size+1))
		}
	case codecZstd:
		var z *zstd.Decoder
		z, err = zstd.NewReader(bytes.NewReader(packed), zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true),
			zstd.WithDecoderMaxWindow(maxZstdWindow))
		if err == nil {
			out, err = io.ReadAll(io.LimitReader(z, size+1))
			z.Close()
		}
	default:
		return nil, unsupported("compression %d: use snappy, gzip, zstd or none", codec)
	}
	if err != nil {
		return nil, malformed("unpack: %v", err)
	}
	if int64(len(out)) != size {
		return nil, malformed("the page unpacks to another size than the %d bytes of its header", size)
	}
	return out, nil
}
