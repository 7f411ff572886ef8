package replicated

import (
	"errors"
	"math"
	"slices"
	"sync"
	"testing"

	"github.com/starling-network/starling/exchange/prg"
)

// ring passes messages between parties of one process.
type ring struct {
	in, out chan []byte
	seen    [][]byte
}

func (r *ring) Pass(out []byte) ([]byte, error) {
	r.out <- out
	b := <-r.in
	r.seen = append(r.seen, b)
	return b, nil
}

// play computes at all parties, and returns the numbers and the messages that each party got.
func play(t testing.TB, x []uint64, seed byte, do func(p *Party, x Vector) (Vector, error)) ([]uint64,
	[Parties][][]byte) {
	t.Helper()
	var channels [Parties]chan []byte // from party i
	for i := range channels {
		channels[i] = make(chan []byte, 1)
	}
	in, out := Split(x, prg.Key{seed, 1}), [Parties]Vector{}
	var seen [Parties][][]byte
	var all sync.WaitGroup
	for i := range Parties {
		all.Go(func() {
			r := &ring{in: channels[(i+1)%Parties], out: channels[i]}
			p, err := New(i, prg.Key{seed, 2, byte(i)}, r)
			if err == nil {
				out[i], err = do(p, in[i])
			}
			if err != nil {
				t.Error(err)
			}
			seen[i] = r.seen
		})
	}
	all.Wait()
	got, err := Join(out)
	if err != nil {
		t.Fatal(err)
	}
	return got, seen
}

// numbers have all sizes up to 2^40, with both signs.
func numbers(n int, seed byte) (out []uint64) {
	s := prg.New(prg.Key{seed, 3})
	for i := range n {
		v := s.Uint64() >> (24 + i%40)
		if s.Below(2) == 1 {
			v = -v
		}
		out = append(out, v)
	}
	return append(out, 0, 1, ^uint64(0), 1<<39, ^uint64(1<<39))
}

func TestProductsAndSigns(t *testing.T) {
	x := numbers(200, 1)
	got, _ := play(t, x, 1, func(p *Party, x Vector) (Vector, error) { return p.Product(x, x) })
	for i, v := range x {
		if got[i] != v*v {
			t.Fatalf("%d²: %d", int64(v), got[i])
		}
	}
	got, _ = play(t, x, 2, func(p *Party, x Vector) (Vector, error) { return p.Positive(x) })
	for i, v := range x {
		if got[i] != uint64(max(0, int64(v))) {
			t.Fatalf("the positive part of %d: %d", int64(v), int64(got[i]))
		}
	}
	for _, v := range []uint64{1 << 63, 1<<63 - 1, 1<<62 + 5} { // comparison is exact for all numbers
		got, _ := play(t, []uint64{v}, 3, func(p *Party, x Vector) (Vector, error) { return p.Positive(x) })
		if got[0] != uint64(max(0, int64(v))) {
			t.Errorf("%x: %x", v, got[0])
		}
	}
}

func TestRound(t *testing.T) {
	x := numbers(2000, 2)
	got, _ := play(t, x, 4, func(p *Party, x Vector) (Vector, error) { return p.Round(x) })
	for i, v := range x {
		if d := int64(got[i]) - int64(v)>>FractionBits; d < -1 || d > 1 {
			t.Fatalf("%d divided: %d", int64(v), int64(got[i]))
		}
	}
}

func TestApply(t *testing.T) {
	w := []float64{0.5, -1, 2, 3, 0.25, -0.125}
	x, bias := []float64{1, -2, 0.5}, []float64{10, -20}
	var all []uint64
	for _, v := range slices.Concat(w, x) {
		all = append(all, Fixed(v, false))
	}
	for _, v := range bias {
		all = append(all, Fixed(v, true))
	}
	part := func(v Vector, from, to int) Vector { return Vector{v[0][from:to], v[1][from:to]} }
	got, _ := play(t, all, 5, func(p *Party, v Vector) (Vector, error) {
		z, err := p.Apply(part(v, 0, 6), part(v, 6, 9), part(v, 9, 11))
		if err != nil {
			return z, err
		}
		return p.Round(z)
	})
	for r, want := range []float64{13.5, -17.5625} {
		if v := Float(got[r]); math.Abs(v-want) > 2.0/(1<<FractionBits) {
			t.Errorf("row %d: %v, wanted %v", r, v, want)
		}
	}
}

// A party gets messages that are as uniform for one input as for another: chi-square over the bytes of all of them.
func TestMessagesLookRandom(t *testing.T) {
	for _, v := range []uint64{0, 5, 1 << 50} {
		x := slices.Repeat([]uint64{v}, 1000)
		_, seen := play(t, x, byte(v), func(p *Party, x Vector) (Vector, error) { return p.Positive(x) })
		for i, list := range seen {
			var count [256]float64
			n := 0.0
			for _, m := range list {
				for _, b := range m {
					count[b]++
					n++
				}
			}
			chi := 0.0
			for _, c := range count {
				chi += (c - n/256) * (c - n/256) / (n / 256)
			}
			if n < 8*1000*10 || math.Abs(chi-255) > 6*math.Sqrt(2*255) {
				t.Errorf("party %d, value %d: chi-square %.0f of 255 over %.0f bytes", i, v, chi, n)
			}
		}
	}
}

func TestJoinRefuses(t *testing.T) {
	of := Split([]uint64{1, 2}, prg.Key{})
	if got, err := Join(of); err != nil || !slices.Equal(got, []uint64{1, 2}) {
		t.Fatal(err)
	}
	short := of
	short[1][0] = short[1][0][:1]
	if _, err := Join(short); !errors.Is(err, ErrMessage) {
		t.Errorf("a short share: %v", err)
	}
	of[2][1] = []uint64{9, 9}
	if _, err := Join(of); !errors.Is(err, ErrMessage) {
		t.Errorf("parties that differ: %v", err)
	}
}

func FuzzDecode(f *testing.F) {
	f.Add([]byte{1, 2, 3, 4, 5, 6, 7, 8}, 1)
	f.Fuzz(func(t *testing.T, b []byte, n int) {
		if v, err := Decode(b, n); err == nil && !slices.Equal(Encode(v), b) {
			t.Errorf("%x changed", b)
		}
	})
}
