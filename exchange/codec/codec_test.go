package codec

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"flag"
	"fmt"
	"math"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/starling-network/starling/compute/kernel"
	"github.com/starling-network/starling/compute/philox"
	"github.com/starling-network/starling/compute/tensor"
)

var rewrite = flag.Bool("rewrite", false, "rewrite the golden files")

func normal(seed uint64, dims ...int) *tensor.Tensor {
	t := tensor.New(tensor.Make(tensor.Float32, dims...))
	philox.NormalTo(t.F32(), seed, 0)
	return t
}

func vector(x ...float32) *tensor.Tensor { return tensor.FromF32(x, len(x)) }

// all codecs, with usual and with unusual parameters.
var all = []struct {
	name string
	Codec
}{
	{Int8, named[Int8]}, {Float32, named[Float32]}, {Float16, named[Float16]}, {BFloat16, named[BFloat16]},
	{E3M0, named[E3M0]}, {Sign, named[Sign]}, {Sparse, named[Sparse]}, {Cosine, named[Cosine]},
	{"topk 8 bits", TopK{Chunk: 4096, K: 256, Bits: 8}}, {"topk float32", TopK{Chunk: 100, K: 7, Bits: 32}},
	{"topk 1 bit", TopK{Chunk: 1000, K: 10, Bits: 1}}, {"topk chunk 1", TopK{Chunk: 1, K: 3, Bits: 16}},
	{"dct 1 bit", DCT{Side: 64, K: 8, Bits: 1}}, {"dct 16", DCT{Side: 16, K: 4, Bits: 32}},
	{"random", RandomK{Every: 20, Bits: 16, Seed: 1337, Round: 3}}, {"random 1 bit", RandomK{Every: 8, Bits: 1}},
}

var shapes = [][]int{{1}, {2}, {7}, {255}, {257}, {4096}, {4097}, {9000}, {64, 64}, {100, 26}, {3, 5, 40}, {128, 192},
	{}}

// Every codec keeps its size, gives the same bytes again and on any path, leaves its argument alone, and decodes to
// finite numbers.
func TestEveryCodecKeepsItsPromises(t *testing.T) {
	defer func() {
		if err := kernel.Select(""); err != nil {
			t.Error(err)
		}
	}()
	for _, c := range all {
		for _, dims := range shapes {
			x := normal(uint64(len(dims))+3, dims...)
			before := x.Clone()
			var payloads [][]byte
			var restored []*tensor.Tensor
			for _, path := range []string{"", "portable"} {
				if err := kernel.Select(path); err != nil {
					t.Fatal(err)
				}
				p, err := Compress(c, x)
				if err != nil {
					t.Fatalf("%s %v: %v", c.name, dims, err)
				}
				y, err := Restore(c, p, x.Shape)
				if err != nil {
					t.Fatalf("%s %v: %v", c.name, dims, err)
				}
				payloads, restored = append(payloads, p), append(restored, y)
			}
			if n := len(payloads[0]); n != Size(c, x.Shape) || n > x.Shape.Bytes() {
				t.Errorf("%s %v: %d bytes, said %d, and it has %d", c.name, dims, n, Size(c, x.Shape), x.Shape.Bytes())
			}
			if !bytes.Equal(payloads[0], payloads[1]) || restored[0].Root() != restored[1].Root() {
				t.Errorf("%s %v: paths give different bits", c.name, dims)
			}
			if x.Root() != before.Root() {
				t.Errorf("%s %v: the tensor was changed", c.name, dims)
			}
			if !restored[0].Shape.Equal(x.Shape) {
				t.Errorf("%s %v: came back as %s", c.name, dims, restored[0].Shape)
			}
			for _, bad := range [][]byte{payloads[0][1:], append([]byte{0}, payloads[0]...), nil} {
				if _, err := Restore(c, bad, x.Shape); !errors.Is(err, ErrPayload) {
					t.Errorf("%s %v: %d bytes restored: %v", c.name, dims, len(bad), err)
				}
			}
		}
	}
}

// The number of bytes, by hand.
func TestSizes(t *testing.T) {
	for _, c := range []struct {
		Codec
		dims []int
		want int
	}{
		{named[Int8], []int{1000}, 1024 + 1000}, {named[Int8], []int{300}, 4 * 300}, // the book would outweigh it
		{named[Float16], []int{7}, 14}, {named[BFloat16], []int{3, 3}, 18},
		{named[E3M0], []int{1024}, 4 * (2 + 128)}, {named[E3M0], []int{259}, 2 + 128 + 2 + 2},
		{named[Sign], []int{8192}, 2 * (4 + 512)}, {named[Sign], []int{4105}, 4 + 512 + 4 + 2}, {named[Sign], []int{1}, 4},
		// 205 times smaller without the book
		{named[Sparse], []int{4096}, 64 + 16 + 16}, {named[Sparse], []int{40, 4096}, 40*510/8 + 16 + 40*16},
		{named[Sparse], []int{4096 + 65}, 66 + 16 + 17}, // 2 of 65 in 13 bits
		{TopK{Chunk: 4096, K: 256, Bits: 8}, []int{40960}, 1024 + 10*(188+256)},
		{named[Cosine], []int{128, 64}, 2 * (36 + 64)}, {DCT{64, 8, 1}, []int{64, 64}, 11 + 4 + 1},
		{DCT{64, 32, 32}, []int{64}, 4*32 + 8},
		{RandomK{Every: 20, Bits: 16}, []int{1001}, 2 * 51},
	} {
		if got := Size(c, tensor.Make(tensor.Float32, c.dims...)); got != c.want {
			t.Errorf("%#v of %v: %d bytes, want %d", c.Codec, c.dims, got, c.want)
		}
	}
}

// A change of these digests is a change of the wire format and of the bits of updates.
func TestGoldenPayloads(t *testing.T) {
	const file = "testdata/payloads.txt"
	var got strings.Builder
	for _, c := range all {
		x := normal(11, 96, 130)
		p, err := Compress(c, x)
		if err != nil {
			t.Fatal(err)
		}
		y, err := Restore(c, p, x.Shape)
		if err != nil {
			t.Fatal(err)
		}
		sum := sha256.Sum256(p)
		fmt.Fprintf(&got, "%-12s %6d bytes %x %s error %.4f\n", c.name, len(p), sum[:6], y.Root().Short(), relative(x, y))
	}
	if *rewrite {
		if err := os.WriteFile(file, []byte(got.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil || string(want) != got.String() {
		t.Fatalf("%v, got\n%s", err, got.String())
	}
}

// relative is the squared error as a share of the squared norm.
func relative(x, y *tensor.Tensor) float64 {
	var e, s float64
	for i, v := range x.F32() {
		d := float64(v) - float64(y.F32()[i])
		e += d * d
		s += float64(v) * float64(v)
	}
	return e / s
}

func TestEdges(t *testing.T) {
	for name, x := range map[string][]float32{
		"all equal": slices.Repeat([]float32{-2.5}, 400), "zeros": make([]float32, 400),
		"negative zeros": slices.Repeat([]float32{float32(math.Copysign(0, -1))}, 400),
		"one element":    {3}, "small": {1, 2, 3}, "one outlier": append(make([]float32, 400), 1e30),
		"subnormal": slices.Repeat([]float32{1e-40, -1e-44}, 300),
		"largest":   slices.Repeat([]float32{math.MaxFloat32, -math.MaxFloat32}, 300),
	} {
		for _, c := range all {
			in := vector(x...)
			p, err := Compress(c, in)
			if err != nil {
				// Sums of the largest numbers overflow: then nothing is sent.
				if name != "largest" {
					t.Errorf("%s %s: %v", name, c.name, err)
				}
				continue
			}
			if _, err := Restore(c, p, in.Shape); err != nil && name != "largest" {
				t.Errorf("%s %s: %v", name, c.name, err)
			}
		}
	}
	for _, bad := range []float32{float32(math.NaN()), float32(math.Inf(1)), float32(math.Inf(-1))} {
		for _, c := range all {
			if _, err := Compress(c, vector(1, bad)); !errors.Is(err, ErrPayload) {
				t.Errorf("%v encoded by %s: %v", bad, c.name, err)
			}
		}
	}
}

// A tensor of equal elements has no spread: it comes back exactly, also if all of it is negative.
func TestEqualElementsComeBack(t *testing.T) {
	for _, v := range []float32{-2.5, 0, 1.5} {
		x := vector(slices.Repeat([]float32{v}, 4096)...)
		for _, name := range []string{Int8, Float32, Float16, BFloat16, E3M0, Sign} {
			p, err := Encode(name, x)
			if err != nil {
				t.Fatal(err)
			}
			y, err := Decode(name, p, x.Shape)
			if err != nil || !slices.Equal(x.F32(), y.F32()) {
				t.Errorf("%s: %v came back as %v, %v", name, v, y.F32()[0], err)
			}
		}
	}
}

func TestUnknownCodecs(t *testing.T) {
	if _, err := Encode("zip", vector(1)); err == nil || Known("zip") {
		t.Error("a codec that nobody knows was used")
	}
	if _, err := Decode("zip", nil, vector(1).Shape); err == nil {
		t.Error("a codec that nobody knows was used")
	}
	for _, c := range []Codec{
		TopK{}, TopK{Chunk: 4096, K: 64, Bits: 9}, TopK{Chunk: 1<<16 + 1, K: 1, Bits: 1}, TopK{Chunk: 4096, Bits: 2},
		DCT{}, DCT{Side: 257, K: 1, Bits: 1}, RandomK{}, RandomK{Every: 2},
	} {
		_, err := Compress(c, vector(1))
		_, also := Restore(c, make([]byte, 4), vector(1).Shape)
		if c.Check() == nil || err == nil || also == nil {
			t.Errorf("%#v was used", c)
		}
	}
}

// fuzz feeds a decoder bytes of the right length, and others: whatever it accepts is finite.
func fuzz(f *testing.F, c Codec) {
	x := normal(5, 33, 34)
	p, err := Compress(c, x)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(p)
	f.Add(bytes.Repeat([]byte{0xff}, len(p)))
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, b []byte) {
		if y, err := Restore(c, b, x.Shape); err == nil {
			if err := finite(y.F32()); err != nil {
				t.Fatal(err)
			}
		} else if !errors.Is(err, ErrPayload) {
			t.Fatal(err)
		}
		// Bytes of the wrong length end at the first check: put them over a good payload.
		q := bytes.Clone(p)
		copy(q, b)
		if y, err := Restore(c, q, x.Shape); err == nil && finite(y.F32()) != nil {
			t.Fatal("accepted a number that is not finite")
		}
	})
}

func FuzzInt8(f *testing.F)     { fuzz(f, named[Int8]) }
func FuzzFloat32(f *testing.F)  { fuzz(f, named[Float32]) }
func FuzzFloat16(f *testing.F)  { fuzz(f, named[Float16]) }
func FuzzBFloat16(f *testing.F) { fuzz(f, named[BFloat16]) }
func FuzzE3M0(f *testing.F)     { fuzz(f, named[E3M0]) }
func FuzzSign(f *testing.F)     { fuzz(f, named[Sign]) }
func FuzzTopK(f *testing.F)     { fuzz(f, TopK{Chunk: 100, K: 9, Bits: 3}) }
func FuzzTopK1(f *testing.F)    { fuzz(f, TopK{Chunk: 100, K: 9, Bits: 1}) }
func FuzzDCT(f *testing.F)      { fuzz(f, DCT{Side: 11, K: 7, Bits: 16}) }
func FuzzRandomK(f *testing.F)  { fuzz(f, RandomK{Every: 5, Bits: 8}) }

// The cost of a round of a model of 10 million parameters, in time and bytes.
func BenchmarkCodecs(b *testing.B) {
	x := normal(1, 2560, 4096)
	for _, c := range all {
		if c.name == "topk chunk 1" { // for the edges only
			continue
		}
		p, err := Compress(c, x)
		if err != nil {
			b.Fatal(err)
		}
		b.Run("encode/"+strings.ReplaceAll(c.name, " ", "_"), func(b *testing.B) {
			b.SetBytes(int64(x.Shape.Bytes()))
			for b.Loop() {
				if _, err := Compress(c, x); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(len(p))/float64(x.Shape.Elements()), "B/param")
		})
		b.Run("decode/"+strings.ReplaceAll(c.name, " ", "_"), func(b *testing.B) {
			b.SetBytes(int64(x.Shape.Bytes()))
			for b.Loop() {
				if _, err := Restore(c, p, x.Shape); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
