package data

import (
	"errors"
	"math/rand/v2"
	"slices"
	"testing"
)

const seqLen = 4

// counting returns a corpus of n windows of seqLen, whose token i is i, and a few tokens more.
func counting(t testing.TB, n int) *Corpus {
	t.Helper()
	all := Tokens{width: 4}
	for i := range n*seqLen + 3 {
		all = all.append([]uint32{uint32(i)})
	}
	c := newCorpus(1<<20, all, 0)
	if c.Windows(seqLen) != n {
		t.Fatalf("%d windows, want %d", c.Windows(seqLen), n)
	}
	return c
}

// windowsAt returns the numbers of the windows of a batch, having checked that each row is one.
func windowsAt(t *testing.T, c *Corpus, a Address) []int {
	t.Helper()
	dst := make([]int32, int(a.Batch)*(seqLen+1))
	if err := c.Batch(dst, a, seqLen); err != nil {
		t.Fatal(err)
	}
	var out []int
	for row := range slices.Chunk(dst, seqLen+1) {
		for i, v := range row {
			if v != row[0]+int32(i) || row[0]%seqLen != 0 {
				t.Fatalf("row %v is not a window", row)
			}
		}
		out = append(out, int(row[0])/seqLen)
	}
	return out
}

// addresses returns all addresses of some rounds in the order of the sequence.
func addresses(shape Address, rounds uint32) []Address {
	var out []Address
	for r := range rounds {
		for s := range shape.StepsPerRound {
			for u := range shape.Units {
				a := shape
				a.Round, a.Step, a.Unit = r, s, u
				out = append(out, a)
			}
		}
	}
	return out
}

func TestEveryWindowOncePerEpoch(t *testing.T) {
	for _, n := range []int{1, 2, 3, 7, 64, 101, 1000} {
		for _, shape := range []Address{
			{Units: 1, StepsPerRound: 1, Batch: 1},
			{Units: 3, StepsPerRound: 2, Batch: 2},
			{Units: 5, StepsPerRound: 7, Batch: 3, Seed: 9},
		} {
			c := counting(t, n)
			perRound := int(shape.Units * shape.StepsPerRound * shape.Batch)
			var sequence []int
			for _, a := range addresses(shape, uint32(3*n/perRound+1)) {
				sequence = append(sequence, windowsAt(t, c, a)...)
			}
			for epoch := range slices.Chunk(sequence[:len(sequence)/n*n], n) {
				sorted := slices.Sorted(slices.Values(epoch))
				for want, got := range sorted {
					if got != want {
						t.Fatalf("%d windows, %+v: an epoch visits %v", n, shape, sorted)
					}
				}
			}
		}
	}
}

func TestUnitsOfARoundShareNoWindow(t *testing.T) {
	shape := Address{Units: 4, StepsPerRound: 5, Batch: 3, Seed: 1}
	c := counting(t, 60*7) // a round is 60 windows, an epoch 7 rounds
	owner := map[int]Address{}
	for _, a := range addresses(shape, 7) {
		for _, w := range windowsAt(t, c, a) {
			if other, ok := owner[w]; ok {
				t.Fatalf("window %d is in %+v and %+v", w, other, a)
			}
			owner[w] = a
		}
	}
	if len(owner) != 60*7 {
		t.Errorf("%d windows were visited, want all", len(owner))
	}
}

func TestBatchKeepsNoState(t *testing.T) {
	shape := Address{Units: 3, StepsPerRound: 4, Batch: 2, Seed: 5}
	c := counting(t, 31)
	all := addresses(shape, 6)
	var want [][]int
	for _, a := range all {
		want = append(want, windowsAt(t, c, a))
	}
	r := rand.New(rand.NewPCG(1, 1))
	for range 500 {
		i := r.IntN(len(all))
		if got := windowsAt(t, c, all[i]); !slices.Equal(got, want[i]) {
			t.Fatalf("%+v: %v, and %v when asked again", all[i], want[i], got)
		}
	}
}

func TestSeedAndEpochChangeTheOrder(t *testing.T) {
	c := counting(t, 50)
	a := Address{Units: 1, StepsPerRound: 1, Batch: 50}
	b, d := a, a
	b.Round, d.Seed = 1, 1
	if first := windowsAt(t, c, a); slices.Equal(first, windowsAt(t, c, b)) || slices.Equal(first, windowsAt(t, c, d)) {
		t.Error("two epochs or two seeds have one order")
	}
}

// These figures are part of the result of every run: they may not change without a new version of the format.
func TestBatchIsFixed(t *testing.T) {
	c := counting(t, 1000)
	a := Address{Seed: 2026, Round: 11, Unit: 2, Step: 30, Units: 4, StepsPerRound: 50, Batch: 6}
	if got, want := windowsAt(t, c, a), []int{63, 630, 113, 959, 949, 116}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

func TestBatchRefuses(t *testing.T) {
	c := counting(t, 10)
	good := Address{Units: 2, StepsPerRound: 2, Batch: 2}
	for name, change := range map[string]func(*Address){
		"unit":       func(a *Address) { a.Unit = 2 },
		"step":       func(a *Address) { a.Step = 2 },
		"batch":      func(a *Address) { a.Batch = 3 },
		"no batch":   func(a *Address) { a.Batch = 0 },
		"no units":   func(a *Address) { a.Units = 0 },
		"far beyond": func(a *Address) { a.Round, a.StepsPerRound, a.Units = 1<<32-1, 1<<32-1, 1<<31 },
	} {
		a := good
		change(&a)
		if err := c.Batch(make([]int32, 2*(seqLen+1)), a, seqLen); !errors.Is(err, ErrAddress) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := c.Batch(make([]int32, 11), good, seqLen); !errors.Is(err, ErrAddress) {
		t.Errorf("a buffer of another size: %v", err)
	}
}

func TestBatchNeedsOneWindow(t *testing.T) {
	c := textCorpus(t, 64, 0)
	a := Address{Units: 1, StepsPerRound: 1, Batch: 1}
	if err := c.Batch(make([]int32, 64), a, 63); err != nil {
		t.Errorf("64 tokens are one window of 63: %v", err)
	}
	for _, n := range []int{64, 1 << 40, 0, -1} {
		var short *TooShortError
		if err := c.Batch(nil, a, n); !errors.As(err, &short) || short.Tokens != 64 || short.SeqLen != n {
			t.Errorf("sequence of %d: %v", n, err)
		}
	}
}

func TestValBatches(t *testing.T) {
	c := counting(t, 20)
	c.Train, c.Val = c.Val, c.Train
	for _, k := range []struct {
		batch, limit int
		want         [][]int // windows
	}{
		{2, 2, [][]int{{0, 5}, {10, 15}}},
		{5, 100, [][]int{{0, 1, 2, 3, 4}, {5, 6, 7, 8, 9}, {10, 11, 12, 13, 14}, {15, 16, 17, 18, 19}}},
		{7, 100, [][]int{{0, 1, 2, 4, 5, 7, 8}, {10, 11, 12, 14, 15, 17, 18}}},
		{24, 3, [][]int{{0, 0, 1, 2, 3, 4, 5, 5, 6, 7, 8, 9, 10, 10, 11, 12, 13, 14, 15, 15, 16, 17, 18, 19}}},
		{4, 0, nil},
		{0, 4, nil},
	} {
		var got [][]int
		for _, b := range c.ValBatches(k.batch, seqLen, k.limit) {
			var windows []int
			for row := range slices.Chunk(b, seqLen+1) {
				if row[seqLen] != row[0]+seqLen {
					t.Fatalf("row %v is not a window", row)
				}
				windows = append(windows, int(row[0])/seqLen)
			}
			got = append(got, windows)
		}
		if !slices.EqualFunc(got, k.want, slices.Equal[[]int]) {
			t.Errorf("batch %d, limit %d: got %v, want %v", k.batch, k.limit, got, k.want)
		}
	}
	if got := textCorpus(t, 100, 0).ValBatches(2, 4, 2); got != nil {
		t.Errorf("batches %v of nothing", got)
	}
}
