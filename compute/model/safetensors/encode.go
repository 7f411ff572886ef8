package safetensors

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"unicode/utf8"

	"github.com/starling-network/starling/compute/tensor"
)

// EncodeAs writes the named tensors, in the order of names, which may leave some of the map out; all must be float32.
// dtypes has the element type of each tensor in the file: F32, F16 or BF16; F32 for a name that it does not have. No
// value is rounded: one that the type does not hold is an error that wraps ErrInexact, before anything is written. meta
// is the file's table of strings: transformers wants {"format": "pt"}. The same values have the same bytes. Elements
// are written from the tensors' own memory. Errors wrap ErrTensor, ErrDType or what w returned.
func EncodeAs(w io.Writer, names []string, tensors map[string]*tensor.Tensor, dtypes map[string]string,
	meta map[string]string) error {
	shapes, err := shapesOf(names, tensors, dtypes)
	if err != nil {
		return err
	}
	return writeFile(w, names, shapes, meta, func(i int) error {
		return writeTensor(w, names[i], tensors[names[i]], dtypes[names[i]])
	})
}

// EncodeEach writes float32 tensors of these names and shapes, in order, with the bytes of EncodeAs. It takes each from
// weight when it writes it, so that one of them is in memory. Errors wrap ErrTensor, or what weight or w returned.
func EncodeEach(w io.Writer, names []string, shapes []tensor.Shape, meta map[string]string,
	weight func(i int) (*tensor.Tensor, error)) error {
	return writeFile(w, names, shapes, meta, func(i int) error {
		t, err := weight(i)
		if err != nil {
			return err
		}
		if !t.Shape.Equal(shapes[i]) {
			return fmt.Errorf("%w: %s is %s, not %s", ErrTensor, names[i], t.Shape, shapes[i])
		}
		return writeTensor(w, names[i], t, "")
	})
}

// writeFile writes the head of a file, and then each of its tensors.
func writeFile(w io.Writer, names []string, shapes []tensor.Shape, meta map[string]string,
	each func(i int) error) error {
	head, err := Head(names, shapes, meta)
	if err != nil {
		return err
	}
	if _, err := w.Write(head); err != nil {
		return fmt.Errorf("safetensors: write: %w", err)
	}
	for i := range names {
		if err := each(i); err != nil {
			return err
		}
	}
	return nil
}

// narrow returns the conversion to a type of two bytes, nil for F32.
func narrow(dtype string) func(float32) (uint16, bool) {
	switch dtype {
	case "F16":
		return toF16
	case "BF16":
		return toBF16
	}
	return nil
}

func writeTensor(w io.Writer, name string, t *tensor.Tensor, dtype string) error {
	write := func(b []byte) error {
		if _, err := w.Write(b); err != nil {
			return fmt.Errorf("safetensors: write %s: %w", name, err)
		}
		return nil
	}
	convert := narrow(dtype)
	if convert == nil {
		return write(t.Bytes())
	}
	raw := make([]byte, 0, min(len(t.Bytes())/2, 1<<16))
	for part := range slices.Chunk(t.F32(), cap(raw)/2) {
		raw = raw[:0]
		for _, x := range part {
			bits, _ := convert(x)
			raw = binary.LittleEndian.AppendUint16(raw, bits)
		}
		if err := write(raw); err != nil {
			return err
		}
	}
	return nil
}

// checkExact makes sure that the type of a tensor in the file holds all its values.
func checkExact(name string, t *tensor.Tensor, dtype string) error {
	convert := narrow(dtype)
	if convert == nil {
		return nil
	}
	for i, x := range t.F32() {
		if _, exact := convert(x); !exact {
			return fmt.Errorf("%w: element %d of %s is %v, which %s does not hold; write it as F32", ErrInexact, i, name, x,
				dtype)
		}
	}
	return nil
}

// shapesOf returns the shapes of tensors as they are written, with the element types of the file.
func shapesOf(names []string, tensors map[string]*tensor.Tensor, dtypes map[string]string) ([]tensor.Shape, error) {
	written := map[string]tensor.DType{"F32": tensor.Float32, "F16": tensor.Float16, "BF16": tensor.BFloat16}
	shapes := make([]tensor.Shape, len(names))
	for i, name := range names {
		t, dtype := tensors[name], cmp.Or(dtypes[name], "F32")
		switch {
		case t == nil:
			return nil, fmt.Errorf("%w: there is none of the name %q", ErrTensor, name)
		case t.Shape.DType != tensor.Float32:
			return nil, fmt.Errorf("%w: %s is %s, only float32 is written", ErrDType, name, t.Shape.DType)
		case !readable(dtype):
			return nil, fmt.Errorf("%w: %s as %.16q, only F32, F16 and BF16 are written", ErrDType, name, dtype)
		}
		if err := checkExact(name, t, dtype); err != nil {
			return nil, err
		}
		shapes[i] = tensor.Shape{DType: written[dtype], Dims: t.Shape.Dims}
	}
	return shapes, nil
}

// Head returns how a file of the named tensors begins, up to their elements, which follow in the order of names without
// holes. It is padded with spaces, as the format allows, so that they are aligned. Tensors may be of any element type.
// meta is the file's table of strings. Errors wrap ErrTensor.
func Head(names []string, shapes []tensor.Shape, meta map[string]string) ([]byte, error) {
	out := bytes.NewBuffer(make([]byte, lengthBytes)) // the length is filled in below
	out.WriteByte('{')
	if len(meta) > 0 {
		writeMetadata(out, meta)
	}
	end := uint64(0)
	seen := make(map[string]bool, len(names))
	for i, name := range names {
		if seen[name] || name == metadataKey || !utf8.ValidString(name) {
			return nil, fmt.Errorf("%w: the name %q is taken, or not UTF-8", ErrTensor, name)
		}
		seen[name] = true
		begin := end
		end += uint64(shapes[i].Bytes())
		writeField(out, name, entry{DType: dtypeNames[shapes[i].DType], Shape: append([]int{}, shapes[i].Dims...),
			Offsets: [2]uint64{begin, end}})
	}
	out.WriteByte('}')
	for out.Len()%lengthBytes != 0 {
		out.WriteByte(' ')
	}
	length := out.Len() - lengthBytes
	if length > MaxHeader {
		return nil, fmt.Errorf("%w: the names and metadata make a header of %d bytes, at most %d", ErrTensor, length,
			MaxHeader)
	}
	binary.LittleEndian.PutUint64(out.Bytes(), uint64(length))
	return out.Bytes(), nil
}

func writeMetadata(out *bytes.Buffer, meta map[string]string) {
	var table bytes.Buffer
	table.WriteByte('{')
	for _, key := range slices.Sorted(maps.Keys(meta)) {
		writeField(&table, key, meta[key])
	}
	table.WriteByte('}')
	writeField(out, metadataKey, json.RawMessage(table.Bytes()))
}

// writeField adds "key":value to an object that is being written.
func writeField(out *bytes.Buffer, key string, value any) {
	if b := out.Bytes(); b[len(b)-1] != '{' {
		out.WriteByte(',')
	}
	writeJSON(out, key)
	out.WriteByte(':')
	writeJSON(out, value)
}

func writeJSON(out *bytes.Buffer, value any) {
	enc := json.NewEncoder(out)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(value); err != nil {
		panic(fmt.Sprintf("safetensors: a plain value failed to encode: %v", err))
	}
	out.Truncate(out.Len() - 1) // the encoder's newline
}
