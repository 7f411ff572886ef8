package safetensors

import (
	"bytes"
	"encoding/binary"
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"math"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/starling-network/starling/compute/tensor"
)

var rewrite = flag.Bool("rewrite", false, "rewrite the files in testdata")

func sample() ([]string, map[string]*tensor.Tensor, map[string]string) {
	return []string{"w", "b", "s<é>"}, map[string]*tensor.Tensor{
		"w": tensor.FromF32([]float32{1, -2, 0.5, float32(math.Inf(1)), math.Float32frombits(0xffc00001), 0x1p-149}, 2,
			3),
		"b":      tensor.FromF32([]float32{7}, 1),
		"s<é>":   tensor.Scalar(3),
		"unused": tensor.FromI32([]int32{1}, 1),
	}, map[string]string{"format": "pt", "by": "starling"}
}

func encode(t testing.TB, names []string, tensors map[string]*tensor.Tensor, meta map[string]string) []byte {
	t.Helper()
	var out bytes.Buffer
	if err := EncodeAs(&out, names, tensors, nil, meta); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func TestRoundTripKeepsBits(t *testing.T) {
	names, tensors, meta := sample()
	got, gotMeta, err := Decode(encode(t, names, tensors, meta))
	if err != nil {
		t.Fatal(err)
	}
	if len(got) != len(names) || !maps.Equal(gotMeta, meta) {
		t.Fatalf("%d tensors, metadata %v", len(got), gotMeta)
	}
	for _, name := range names {
		if g, w := got[name], tensors[name]; !g.Shape.Equal(w.Shape) || !bytes.Equal(g.Bytes(), w.Bytes()) {
			t.Errorf("%s: got %s %x, want %s %x", name, g.Shape, g.Bytes(), w.Shape, w.Bytes())
		}
	}
}

func TestFileIsGolden(t *testing.T) {
	got := encode(t, []string{"w", "b", "s<é>"}, second(sample()), map[string]string{"format": "pt", "by": "starling"})
	const path = "testdata/sample.safetensors"
	if *rewrite {
		if err := os.WriteFile(path, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("%s differs: got %q", path, got)
	}
	if n := binary.LittleEndian.Uint64(got); n%8 != 0 || got[8] != '{' {
		t.Errorf("a header of %d bytes that starts with %q", n, got[8])
	}
}

func second[A, B, C any](_ A, b B, _ C) B { return b }

func TestEmptyFile(t *testing.T) {
	tensors, meta, err := Decode(encode(t, nil, nil, nil))
	if err != nil || len(tensors) != 0 || len(meta) != 0 {
		t.Errorf("got %v, %v, %v", tensors, meta, err)
	}
}

func TestEncodeRefuses(t *testing.T) {
	_, tensors, _ := sample()
	tensors[metadataKey], tensors["\xff"] = tensors["b"], tensors["b"]
	for _, c := range []struct {
		names []string
		want  error
	}{
		{[]string{"absent"}, ErrTensor},
		{[]string{"b", "b"}, ErrTensor},
		{[]string{metadataKey}, ErrTensor},
		{[]string{"\xff"}, ErrTensor},
		{[]string{"unused"}, ErrDType},
	} {
		if err := EncodeAs(io.Discard, c.names, tensors, nil, nil); !errors.Is(err, c.want) {
			t.Errorf("%q: got %v, want %v", c.names, err, c.want)
		}
	}
}

type failAfter int

var errFull = errors.New("disk full")

func (n *failAfter) Write(p []byte) (int, error) {
	if *n--; *n < 0 {
		return 0, errFull
	}
	return len(p), nil
}

func TestEncodeReportsEveryFailedWrite(t *testing.T) {
	names, tensors, meta := sample()
	for writes := range failAfter(1 + len(names)) {
		if err := EncodeAs(&writes, names, tensors, nil, meta); !errors.Is(err, errFull) {
			t.Errorf("got %v, want %v", err, errFull)
		}
	}
}

// TestHead describes a tensor of every element type, whose elements follow.
func TestHead(t *testing.T) {
	var names, want []string
	var shapes []tensor.Shape
	size := 0
	for d := tensor.DType(1); d.Valid(); d++ {
		names, want, shapes = append(names, d.String()), append(want, dtypeNames[d]), append(shapes, tensor.Make(d, 2, 3))
		size += shapes[len(shapes)-1].Bytes()
	}
	head, err := Head(names, shapes, nil)
	if err != nil || len(head)%8 != 0 {
		t.Fatal(len(head), err)
	}
	f, err := Open(append(head, make([]byte, size)...))
	if err != nil || !slices.Equal(f.Names(), names) {
		t.Fatal(f, err)
	}
	for i, name := range names {
		if got := f.DType(name); got != want[i] || got == "" {
			t.Errorf("%s is %q, want %q", name, got, want[i])
		}
	}
	for _, name := range []string{metadataKey, "\xff"} {
		if _, err := Head([]string{name}, shapes[:1], nil); !errors.Is(err, ErrTensor) {
			t.Errorf("%q: %v", name, err)
		}
	}
}

// file frames a header written by hand.
func file(header string, body ...byte) []byte {
	return append(append(binary.LittleEndian.AppendUint64(nil, uint64(len(header))), header...), body...)
}

func TestDecodeConvertsHalfPrecision(t *testing.T) {
	for _, c := range []struct {
		dtype string
		bits  uint16
		want  uint32
	}{
		{"F16", 0x3c00, 0x3f800000}, // 1
		{"F16", 0xc000, 0xc0000000}, // -2
		{"F16", 0x7bff, 0x477fe000}, // 65504, the largest
		{"F16", 0x0400, 0x38800000}, // 2^-14, the smallest normal
		{"F16", 0x0001, 0x33800000}, // 2^-24, the smallest subnormal
		{"F16", 0x83ff, 0xb87fc000}, // the largest subnormal, negative
		{"F16", 0x8000, 0x80000000}, // -0
		{"F16", 0x7c00, 0x7f800000}, // infinity
		{"F16", 0xfe01, 0xffc02000}, // a NaN
		{"BF16", 0x3f80, 0x3f800000},
		{"BF16", 0x8001, 0x80010000},
		{"BF16", 0xffc1, 0xffc10000},
	} {
		header := fmt.Sprintf(`{"a":{"dtype":%q,"shape":[],"data_offsets":[0,2]}}`, c.dtype)
		tensors, _, err := Decode(file(header, byte(c.bits), byte(c.bits>>8)))
		if err != nil {
			t.Fatal(err)
		}
		if got := binary.LittleEndian.Uint32(tensors["a"].Bytes()); got != c.want {
			t.Errorf("%s %04x: got %08x, want %08x", c.dtype, c.bits, got, c.want)
		}
	}
}

func TestDecodeAcceptsAnyOrderAndPadding(t *testing.T) {
	header := `{"b":{"shape":[2],"data_offsets":[4,12],"dtype":"F32"},` +
		`"a":{"dtype":"F32","shape":[1,1],"data_offsets":[0,4]}}   `
	body := make([]byte, 12)
	body[4], body[5], body[6], body[7] = 0, 0, 0x80, 0x3f
	tensors, meta, err := Decode(file(header, body...))
	if err != nil || meta != nil || tensors["b"].F32()[0] != 1 || tensors["a"].Shape.Rank() != 2 {
		t.Errorf("got %v, %v, %v", tensors, meta, err)
	}
}

func TestDecodeRefuses(t *testing.T) {
	one := `{"dtype":"F32","shape":[1],"data_offsets":[0,4]}`
	with := func(from, to string) []byte {
		return file(`{"a":`+strings.Replace(one, from, to, 1)+`}`, 0, 0, 0, 0)
	}
	if _, _, err := Decode(with("", "")); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		data []byte
		want error
	}{
		"nothing":                  {nil, ErrMalformed},
		"no header":                {make([]byte, 8), ErrMalformed},
		"header beyond the end":    {binary.LittleEndian.AppendUint64(nil, 9), ErrMalformed},
		"huge header":              {binary.LittleEndian.AppendUint64(nil, math.MaxUint64), ErrMalformed},
		"leading space":            {file(" {}"), ErrMalformed},
		"not UTF-8":                {file("{\"\xff\":1}"), ErrMalformed},
		"not closed":               {file(`{"a":` + one), ErrMalformed},
		"two objects":              {file(`{}{}`), ErrMalformed},
		"padding of zeros":         {file("{}\x00"), ErrMalformed},
		"an array":                 {file(`{"a":[]}`), ErrMalformed},
		"name twice":               {file(`{"a":`+one+`,"a":`+one+`}`, 0, 0, 0, 0), ErrMalformed},
		"name twice, escaped":      {file(`{"a":`+one+`,"\u0061":`+one+`}`, 0, 0, 0, 0), ErrMalformed},
		"metadata of numbers":      {file(`{"__metadata__":{"a":1}}`), ErrMalformed},
		"metadata of null":         {file(`{"__metadata__":{"a":null}}`), ErrMalformed},
		"metadata twice":           {file(`{"__metadata__":{},"__metadata__":{}}`), ErrMalformed},
		"metadata key twice":       {file(`{"__metadata__":{"a":"","a":""}}`), ErrMalformed},
		"integers":                 {with("F32", "I32"), ErrDType},
		"4 bits":                   {with("F32", "F4"), ErrDType},
		"no dtype":                 {with(`"dtype":"F32",`, ""), ErrMalformed},
		"dtype twice":              {with(`"dtype":"F32"`, `"dtype":"F32","dtype":"F32"`), ErrMalformed},
		"unknown field":            {with(`"dtype":"F32"`, `"dtype":"F32","x":1`), ErrMalformed},
		"no shape":                 {with(`[1]`, `null`), ErrMalformed},
		"dimension of null":        {with(`[1]`, `[1,null]`), ErrMalformed},
		"dimension of 0":           {with(`[1]`, `[0]`), ErrMalformed},
		"negative dimensions":      {with(`[1]`, `[-1,-1]`), ErrMalformed},
		"fractional dimension":     {with(`[1]`, `[1.0]`), ErrMalformed},
		"dimensions that overflow": {with(`[1]`, `[4294967296,4294967296]`), ErrMalformed},
		"bytes that overflow":      {with(`[1]`, `[4611686018427387905]`), ErrMalformed},
		"nine dimensions":          {with(`[1]`, `[1,1,1,1,1,1,1,1,1]`), ErrMalformed},
		"three offsets":            {with(`[0,4]`, `[0,4,4]`), ErrMalformed},
		"offset of null":           {with(`[0,4]`, `[null,4]`), ErrMalformed},
		"offsets backwards":        {with(`[0,4]`, `[4,0]`), ErrMalformed},
		"offsets of another size":  {with(`[0,4]`, `[0,3]`), ErrMalformed},
		"offsets beyond the end":   {with(`[0,4]`, `[4,8]`), ErrMalformed},
		"huge offsets":             {with(`[0,4]`, `[18446744073709551612,18446744073709551615]`), ErrMalformed},
		"overlap":                  {file(`{"a":`+one+`,"b":`+one+`}`, 0, 0, 0, 0), ErrMalformed},
		"hole at the end":          {file(`{"a":`+one+`}`, 0, 0, 0, 0, 0), ErrMalformed},
		"hole at the start": {file(`{"a":{"dtype":"F32","shape":[1],"data_offsets":[4,8]}}`, make([]byte, 8)...),
			ErrMalformed},
	} {
		if _, _, err := Decode(c.data); !errors.Is(err, c.want) {
			t.Errorf("%s: got %v, want %v", name, err, c.want)
		}
	}
}

func FuzzDecode(f *testing.F) {
	f.Add(encode(f, []string{"w", "b", "s<é>"}, second(sample()), map[string]string{"format": "pt"}))
	f.Add(file(`{"a":{"dtype":"F16","shape":[],"data_offsets":[0,2]}}`, 0, 1))
	f.Fuzz(func(t *testing.T, data []byte) {
		tensors, meta, err := Decode(data)
		if err != nil {
			if !errors.Is(err, ErrMalformed) && !errors.Is(err, ErrDType) {
				t.Fatalf("untyped error %v", err)
			}
			return
		}
		var names []string
		for name := range tensors {
			names = append(names, name)
		}
		again, metaAgain, err := Decode(encode(t, names, tensors, meta))
		if err != nil || len(again) != len(tensors) || !maps.Equal(meta, metaAgain) {
			t.Fatalf("what was read is not written and read again: %v", err)
		}
		for name, want := range tensors {
			if !bytes.Equal(again[name].Bytes(), want.Bytes()) {
				t.Fatalf("%q has other bits", name)
			}
		}
	})
}

// Every value of the half-precision types, NaNs included, keeps its bits through a tensor.
func TestEncodeAsKeepsBits(t *testing.T) {
	for _, dtype := range []string{"F16", "BF16"} {
		var raw []byte
		for bits := range 1 << 16 {
			raw = binary.LittleEndian.AppendUint16(raw, uint16(bits))
		}
		header := fmt.Sprintf(`{"a":{"dtype":%q,"shape":[65536],"data_offsets":[0,131072]}} `, dtype)
		header += strings.Repeat(" ", -len(header)&7)
		file := append(append(binary.LittleEndian.AppendUint64(nil, uint64(len(header))), header...), raw...)
		f, err := Open(file)
		if err != nil || f.DType("a") != dtype || f.DType("b") != "" || len(f.Names()) != 1 {
			t.Fatalf("%v: %+v", err, f)
		}
		a, err := f.Tensor("a")
		if err != nil {
			t.Fatal(err)
		}
		var out bytes.Buffer
		if err := EncodeAs(&out, f.Names(), map[string]*tensor.Tensor{"a": a}, map[string]string{"a": dtype},
			nil); err != nil {
			t.Fatal(err)
		}
		if got := out.Bytes(); len(got) < len(raw) || !bytes.Equal(got[len(got)-len(raw):], raw) {
			t.Errorf("%s: the elements differ", dtype)
		}
	}
}

func TestEncodeAsNeverRounds(t *testing.T) {
	for dtype, values := range map[string][]float32{
		"F16":  {1 + 0x1p-11, 65536, 65520, 0x1p-25, 0x1p-149, 0x1.8p-24, math.Float32frombits(0x7f800001)},
		"BF16": {1 + 0x1p-8, 0x1p-149, math.Float32frombits(0x7f800001)},
	} {
		for _, x := range values {
			var out bytes.Buffer
			tensors := map[string]*tensor.Tensor{"a": tensor.FromF32([]float32{0, x}, 2)}
			err := EncodeAs(&out, []string{"a"}, tensors, map[string]string{"a": dtype}, nil)
			if !errors.Is(err, ErrInexact) || out.Len() > 0 {
				t.Errorf("%s of %v: %v, %d bytes written", dtype, x, err, out.Len())
			}
		}
	}
	one := map[string]*tensor.Tensor{"a": tensor.Scalar(1)}
	if err := EncodeAs(io.Discard, []string{"a"}, one, map[string]string{"a": "I32"}, nil); !errors.Is(err, ErrDType) {
		t.Errorf("as integers: %v", err)
	}
}

func TestTensorsOfOtherTypesMayBeLeftAlone(t *testing.T) {
	header := `{"a":{"dtype":"U8","shape":[4],"data_offsets":[0,4]},"b":{"dtype":"F32","shape":[],"data_offsets":[4,8]}}`
	f, err := Open(file(header, 1, 2, 3, 4, 0, 0, 0x80, 0x3f))
	if err != nil {
		t.Fatal(err)
	}
	if b, err := f.Tensor("b"); err != nil || b.F32()[0] != 1 {
		t.Errorf("b: %v, %v", b, err)
	}
	if _, err := f.Tensor("a"); !errors.Is(err, ErrDType) {
		t.Errorf("a: %v", err)
	}
	if _, err := f.Tensor("c"); !errors.Is(err, ErrTensor) {
		t.Errorf("c: %v", err)
	}
}

// Decode reads a whole file: all its tensors, as Tensor returns them, and its table of strings. A tensor without
// elements is refused. The memory used is proportional to the length of data. Errors wrap ErrMalformed or ErrDType.
func Decode(data []byte) (tensors map[string]*tensor.Tensor, meta map[string]string, err error) {
	f, err := Open(data)
	if err != nil {
		return nil, nil, err
	}
	tensors = make(map[string]*tensor.Tensor, len(f.names))
	for _, name := range f.names {
		if tensors[name], err = f.Tensor(name); err != nil {
			return nil, nil, err
		}
	}
	return tensors, f.Meta, nil
}

// TestTensorsLieInTheFile: float32 is not copied if it is aligned, and is the same if it is not.
func TestTensorsLieInTheFile(t *testing.T) {
	x := tensor.FromF32([]float32{1, 2, 3}, 3)
	var out bytes.Buffer
	if err := EncodeAs(&out, []string{"x"}, map[string]*tensor.Tensor{"x": x}, nil, nil); err != nil {
		t.Fatal(err)
	}
	room := tensor.Alloc(out.Len() + 4)
	for shift, lies := range map[int]bool{0: true, 4: false} {
		file := room[shift : shift+out.Len()]
		copy(file, out.Bytes())
		f, err := Open(file)
		if err != nil {
			t.Fatal(err)
		}
		got, err := f.Tensor("x")
		if err != nil || got.Root() != x.Root() || &got.Bytes()[0] == &f.Bytes("x")[0] != lies {
			t.Errorf("shifted by %d: %v, %v", shift, got.F32(), err)
		}
		if f.Bytes("none") != nil {
			t.Error("bytes of no tensor")
		}
	}
}

// TestEncodeEach has the bytes of EncodeAs.
func TestEncodeEach(t *testing.T) {
	names := []string{"b", "a"}
	all := map[string]*tensor.Tensor{"a": tensor.FromF32([]float32{1, 2, 3}, 3), "b": tensor.Scalar(4)}
	meta := map[string]string{"format": "pt"}
	var whole, each bytes.Buffer
	if err := EncodeAs(&whole, names, all, nil, meta); err != nil {
		t.Fatal(err)
	}
	shapes := []tensor.Shape{all["b"].Shape, all["a"].Shape}
	err := EncodeEach(&each, names, shapes, meta, func(i int) (*tensor.Tensor, error) { return all[names[i]], nil })
	if err != nil || !bytes.Equal(each.Bytes(), whole.Bytes()) {
		t.Errorf("other bytes, %v", err)
	}
	err = EncodeEach(&each, names, shapes, meta, func(i int) (*tensor.Tensor, error) { return all["a"], nil })
	if !errors.Is(err, ErrTensor) {
		t.Errorf("another shape: %v", err)
	}
	failed := errors.New("failed")
	err = EncodeEach(&each, names, shapes, meta, func(int) (*tensor.Tensor, error) { return nil, failed })
	if err != failed {
		t.Errorf("no tensor: %v", err)
	}
}
