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

	"github.com/starling-network/starling/compute/kernel"
	"github.com/starling-network/starling/compute/tensor"
)

// File is a file that has been checked: its tensors lie where its header says. It keeps the bytes it was made of.
type File struct {
	Meta map[string]string // the table of strings

	names   []string
	entries map[string]entry
	body    []byte
}

// Open reads the header of a whole file. Errors wrap ErrMalformed or ErrDType.
func Open(data []byte) (*File, error) {
	header, body, err := split(data)
	if err != nil {
		return nil, err
	}
	entries, meta, err := readHeader(header)
	if err != nil {
		return nil, err
	}
	if err := checkLayout(entries, uint64(len(body))); err != nil {
		return nil, err
	}
	f := &File{Meta: meta, entries: make(map[string]entry, len(entries)), body: body}
	for _, e := range entries {
		f.names = append(f.names, e.name)
		f.entries[e.name] = e
	}
	return f, nil
}

// Names returns the names of the tensors in the order of the header.
func (f *File) Names() []string { return f.names }

// DType returns the element type of a tensor as the file writes it, such as "BF16"; "" if there is no such tensor.
func (f *File) DType(name string) string { return f.entries[name].DType }

// Bytes are the bytes of a tensor as the file writes it: part of those that the file was made of. nil if there is no
// such tensor.
func (f *File) Bytes(name string) []byte {
	e, ok := f.entries[name]
	if !ok {
		return nil
	}
	return f.body[e.Offsets[0]:e.Offsets[1]:e.Offsets[1]]
}

// Tensor returns a tensor as float32: F32 keeps its bits; F16 and BF16 become float32, which holds them exactly. One of
// F32 lies in the bytes that the file was made of, if these are aligned: it may be written to only if they may. Errors
// wrap ErrDType, or ErrTensor if there is no such tensor.
func (f *File) Tensor(name string) (*tensor.Tensor, error) {
	e, ok := f.entries[name]
	if !ok {
		return nil, fmt.Errorf("%w: there is none of the name %q", ErrTensor, name)
	}
	if !readable(e.DType) {
		return nil, fmt.Errorf("%w: tensor %q is %s; F32, F16 and BF16 are read", ErrDType, name, e.DType)
	}
	return e.read(f.Bytes(name)), nil
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

// readHeader walks the object key by key: a decoder into a map would hide keys that occur twice, of which two readers
// may take different ones.
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
		return fmt.Errorf("%w: tensor %q is %.16q", ErrDType, e.name, e.DType)
	}
	if err := e.float32Shape().Check(math.MaxInt); err != nil {
		return malformed("tensor %q: %v", e.name, err)
	}
	elements := uint64(e.float32Shape().Elements()) // four bytes each fit an int
	if elements > math.MaxInt/size {
		return malformed("tensor %q: %v has too many elements", e.name, e.Shape)
	}
	want := elements * size
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
	if e.DType == "F32" && tensor.Aligned(raw) {
		return tensor.Wrap(e.float32Shape(), raw)
	}
	t := tensor.New(e.float32Shape())
	switch e.DType {
	case "F32":
		copy(t.Bytes(), raw)
	case "F16":
		for i, dst := 0, t.F32(); i < len(dst); i++ {
			dst[i] = kernel.FromFloat16(binary.LittleEndian.Uint16(raw[2*i:]))
		}
	case "BF16":
		for i, dst := 0, t.F32(); i < len(dst); i++ {
			dst[i] = kernel.FromBFloat16(binary.LittleEndian.Uint16(raw[2*i:]))
		}
	}
	return t
}
