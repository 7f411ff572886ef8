package safetensors

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"slices"
	"unicode/utf8"

	"github.com/starling-network/starling/compute/tensor"
)

// Decode reads a whole file. Tensors of F32 keep their bits; F16 and BF16 become float32, which holds them exactly. A
// tensor without elements is refused. The memory used is proportional to the length of data. Errors wrap ErrMalformed or ErrDType.
func Decode(data []byte) (tensors map[string]*tensor.Tensor, meta map[string]string, err error) {
	header, body, err := split(data)
	if err != nil {
		return nil, nil, err
	}
	entries, meta, err := readHeader(header)
	if err != nil {
		return nil, nil, err
	}
	if err := checkLayout(entries, uint64(len(body))); err != nil {
		return nil, nil, err
	}
	tensors = make(map[string]*tensor.Tensor, len(entries))
	for _, e := range entries {
		tensors[e.name] = e.read(body[e.Offsets[0]:e.Offsets[1]])
	}
	return tensors, meta, nil
}

func split(data []byte) (header, body []byte, err error) {
	if len(data) < lengthBytes {
		return nil, nil, malformed("%d bytes are no header", len(data))
	}
	n, rest := binary.LittleEndian.Uint64(data), data[lengthBytes:]
	if n > MaxHeader || n > uint64(len(rest)) {
		return nil, nil, malformed("a header of %d bytes in a file of %d, at most %d", n, len(data), MaxHeader)
	}
	header = rest[:n]
	if n == 0 || header[0] != '{' || !utf8.Valid(header) {
		return nil, nil, malformed("the header is not an object of valid UTF-8")
	}
	return header, rest[n:], nil
}

// readHeader walks the object key by key: a decoder into a map would hide keys that occur twice, of which two readers may
// take different ones.
func readHeader(header []byte) (entries []entry, meta map[string]string, err error) {
	seen := map[string]bool{}
	err = eachField(header, func(key string, value json.RawMessage) error {
		if seen[key] {
			return malformed("%q occurs twice", key)
		}
		seen[key] = true
		if key == metadataKey {
			meta, err = readMetadata(value)
			return err
		}
		if len(entries) == MaxTensors {
			return malformed("more than %d tensors", MaxTensors)
		}
		e, err := readEntry(key, value)
		if err != nil {
			return err
		}
		entries = append(entries, e)
		return nil
	})
	return entries, meta, err
}

// eachField calls visit for the fields of a JSON object, after which only white space may follow.
func eachField(object []byte, visit func(key string, value json.RawMessage) error) error {
	dec := json.NewDecoder(bytes.NewReader(object))
	if t, err := dec.Token(); err != nil || t != json.Delim('{') {
		return malformed("an object is missing in the header")
	}
	for dec.More() {
		t, err := dec.Token()
		key, ok := t.(string)
		if err != nil || !ok {
			return malformed("a key of the header: %v", err)
		}
		var value json.RawMessage
		if err := dec.Decode(&value); err != nil {
			return malformed("%q: %v", key, err)
		}
		if err := visit(key, value); err != nil {
			return err
		}
	}
	if _, err := dec.Token(); err != nil {
		return malformed("the header: %v", err)
	}
	if _, err := dec.Token(); err != io.EOF {
		return malformed("more follows the header's object")
	}
	return nil
}

func readMetadata(value json.RawMessage) (map[string]string, error) {
	meta := map[string]string{}
	err := eachField(value, func(key string, value json.RawMessage) error {
		var text *string
		if _, twice := meta[key]; twice {
			return malformed("%s: %q occurs twice", metadataKey, key)
		}
		if err := json.Unmarshal(value, &text); err != nil || text == nil {
			return malformed("%s: %q is not a string", metadataKey, key)
		}
		meta[key] = *text
		return nil
	})
	return meta, err
}

func readEntry(name string, value json.RawMessage) (entry, error) {
	e := entry{name: name}
	var offsets []uint64 // an array of two would forgive any number
	fields := map[string]any{"dtype": &e.DType, "shape": &e.Shape, "data_offsets": &offsets}
	err := eachField(value, func(key string, value json.RawMessage) error {
		into, ok := fields[key]
		if !ok {
			return malformed("tensor %q: %q is unknown or occurs twice", name, key)
		}
		delete(fields, key)
		if err := json.Unmarshal(value, into); err != nil || bytes.Contains(value, []byte("null")) {
			return malformed("tensor %q: %s is %.40s (%v)", name, key, value, err)
		}
		return nil
	})
	if err != nil {
		return entry{}, err
	}
	if len(fields) > 0 || e.Shape == nil || len(offsets) != 2 {
		return entry{}, malformed("tensor %q needs a dtype, a shape and two data_offsets", name)
	}
	e.Offsets = [2]uint64(offsets)
	return e, e.check()
}

// check makes sure that the shape is one that a tensor may have, and fills the offsets.
func (e *entry) check() error {
	size, ok := sizes[e.DType]
	if !ok {
		return fmt.Errorf("%w: tensor %q is %.16q; F32, F16 and BF16 are read", ErrDType, e.name, e.DType)
	}
	if err := e.float32Shape().Check(math.MaxInt); err != nil {
		return malformed("tensor %q: %v", e.name, err)
	}
	want := uint64(e.float32Shape().Elements()) * size // the float32 bytes fit an int
	if begin, end := e.Offsets[0], e.Offsets[1]; end < begin || end-begin != want {
		return malformed("tensor %q: data_offsets %d do not fit %s %v", e.name, e.Offsets, e.DType, e.Shape)
	}
	return nil
}

// checkLayout makes sure that the tensors fill the body without overlap or hole.
func checkLayout(entries []entry, body uint64) error {
	byOffset := slices.Clone(entries)
	slices.SortFunc(byOffset, func(a, b entry) int { return cmp.Compare(a.Offsets[0], b.Offsets[0]) })
	end := uint64(0)
	for _, e := range byOffset {
		if e.Offsets[0] != end {
			return malformed("tensor %q begins at %d, where %d is the end of the one before", e.name, e.Offsets[0], end)
		}
		end = e.Offsets[1]
	}
	if end != body {
		return malformed("the tensors end at %d, the file at %d", end, body)
	}
	return nil
}

// read converts the elements of a tensor whose entry has been checked.
func (e *entry) read(raw []byte) *tensor.Tensor {
	t := tensor.New(e.float32Shape())
	switch e.DType {
	case "F32":
		copy(t.Bytes(), raw)
	case "F16":
		for i, dst := 0, t.F32(); i < len(dst); i++ {
			dst[i] = fromF16(binary.LittleEndian.Uint16(raw[2*i:]))
		}
	case "BF16":
		for i, dst := 0, t.F32(); i < len(dst); i++ {
			dst[i] = math.Float32frombits(uint32(binary.LittleEndian.Uint16(raw[2*i:])) << 16)
		}
	}
	return t
}

// fromF16 widens IEEE-754 binary16, which has 5 bits of exponent with bias 15 and 10 of fraction. Every value is exact;
// a NaN keeps its sign and payload.
func fromF16(h uint16) float32 {
	sign, exponent, fraction := uint32(h>>15)<<31, uint32(h>>10)&31, uint32(h)&1023
	switch exponent {
	case 0: // zero or subnormal: fraction * 2^-24
		magnitude := float32(fraction) * 0x1p-24
		return math.Float32frombits(sign | math.Float32bits(magnitude))
	case 31: // infinity or NaN
		return math.Float32frombits(sign | 0xff<<23 | fraction<<13)
	}
	return math.Float32frombits(sign | (exponent+127-15)<<23 | fraction<<13)
}
