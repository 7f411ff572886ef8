package screen

import (
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"

	"github.com/starling-network/starling/compute/tensor"
)

// crowd is n updates that share a direction, each with as much noise of its own.
func crowd(n int, seed uint64) [][]*tensor.Tensor {
	r := rand.New(rand.NewPCG(seed, 1))
	sizes := []int{300, 1, 4000}
	common := make([][]float32, len(sizes))
	for i, size := range sizes {
		for range size {
			common[i] = append(common[i], float32(r.NormFloat64()))
		}
	}
	updates := make([][]*tensor.Tensor, n)
	for k := range updates {
		for i, size := range sizes {
			t := tensor.New(tensor.Shape{DType: tensor.Float32, Dims: []int{size}})
			for j := range t.F32() {
				t.F32()[j] = (common[i][j] + float32(r.NormFloat64())) * 1e-2
			}
			updates[k] = append(updates[k], t)
		}
	}
	return updates
}

func scale(u []*tensor.Tensor, f float32) {
	for _, t := range u {
		for j := range t.F32() {
			t.F32()[j] *= f
		}
	}
}

func copyOf(u []*tensor.Tensor, noise float64) []*tensor.Tensor {
	r := rand.New(rand.NewPCG(9, 9))
	out := make([]*tensor.Tensor, len(u))
	for i, t := range u {
		out[i] = tensor.New(t.Shape)
		for j, x := range t.F32() {
			out[i].F32()[j] = x * float32(1+noise*r.NormFloat64())
		}
	}
	return out
}

func TestHonestCrowdIsNotOdd(t *testing.T) {
	for seed := range uint64(50) {
		for _, n := range []int{1, 2, 3, 4, 8} {
			for i, r := range Updates(crowd(n, seed), Default) {
				if r.Outlier() {
					t.Fatalf("seed %d, %d updates: update %d: %+v", seed, n, i, r)
				}
			}
		}
	}
}

func TestEachAttackIsSeen(t *testing.T) {
	for name, c := range map[string]struct {
		attack func(u [][]*tensor.Tensor)
		flags  map[int][]Flag
	}{
		"infinity": {func(u [][]*tensor.Tensor) { u[2][1].F32()[0] = float32(math.Inf(1)) },
			map[int][]Flag{2: {NotFinite}}},
		"nan": {func(u [][]*tensor.Tensor) { u[0][2].F32()[17] = float32(math.NaN()) },
			map[int][]Flag{0: {NotFinite}}},
		"huge":      {func(u [][]*tensor.Tensor) { scale(u[4], 100) }, map[int][]Flag{4: {NormLarge}}},
		"nothing":   {func(u [][]*tensor.Tensor) { scale(u[1], 0) }, map[int][]Flag{1: {NormSmall}}},
		"few steps": {func(u [][]*tensor.Tensor) { scale(u[1], 0.1) }, map[int][]Flag{1: {NormSmall}}},
		"reversed":  {func(u [][]*tensor.Tensor) { scale(u[3], -1) }, map[int][]Flag{3: {OpposesMajority}}},
		"huge and reversed": {func(u [][]*tensor.Tensor) { scale(u[3], -1000) }, map[int][]Flag{3: {NormLarge,
			OpposesMajority}}},
		"copied":          {func(u [][]*tensor.Tensor) { u[1] = copyOf(u[3], 0) }, map[int][]Flag{1: {Copy}, 3: {Copy}}},
		"lightly changed": {func(u [][]*tensor.Tensor) { u[1] = copyOf(u[3], 0.01) }, map[int][]Flag{1: {Copy}, 3: {Copy}}},
		"copied and scaled": {func(u [][]*tensor.Tensor) { u[1] = copyOf(u[3], 0); scale(u[1], 1.5) },
			map[int][]Flag{1: {Copy}, 3: {Copy}}},
	} {
		u := crowd(6, 1)
		c.attack(u)
		for i, r := range Updates(u, Default) {
			if !slices.Equal(r.Flags, c.flags[i]) {
				t.Errorf("%s: update %d: %+v, want %v", name, i, r, c.flags[i])
			}
		}
	}
}

// Reports do not depend on the order of the updates.
func TestOrderDoesNotMatter(t *testing.T) {
	u := crowd(5, 3)
	scale(u[2], -1)
	forward := Updates(u, Default)
	slices.Reverse(u)
	backward := Updates(u, Default)
	slices.Reverse(backward)
	for i := range forward {
		if !slices.Equal(forward[i].Flags, backward[i].Flags) || math.Abs(forward[i].Cosine-backward[i].Cosine) > 1e-12 ||
			forward[i].Overlap != backward[i].Overlap {
			t.Errorf("%d: %+v, %+v", i, forward[i], backward[i])
		}
	}
	slices.Reverse(u)
	if again := Updates(u, Default); !reflect.DeepEqual(again, forward) {
		t.Error("the same updates give another report")
	}
}

func TestNobodyDoesAnything(t *testing.T) {
	u := crowd(4, 1)
	for _, x := range u {
		scale(x, 0)
	}
	for i, r := range Updates(u, Default) {
		if r.Outlier() || r.Ratio != 1 || r.Cosine != 0 || r.Overlap != 0 {
			t.Errorf("%d: %+v", i, r)
		}
	}
	if got := Updates(nil, Default); len(got) != 0 {
		t.Errorf("%v", got)
	}
}

func TestLargest(t *testing.T) {
	u := []*tensor.Tensor{tensor.New(tensor.Shape{DType: tensor.Float32, Dims: []int{3}}),
		tensor.New(tensor.Shape{DType: tensor.Float32, Dims: []int{4}})}
	copy(u[0].F32(), []float32{-1, 0, 5})
	copy(u[1].F32(), []float32{1, -5, 2, 1})
	for k, want := range map[int][]int{1: {2}, 2: {2, 4}, 3: {2, 4, 5}, 4: {0, 2, 4, 5}, 9: {0, 2, 3, 4, 5, 6}} {
		var at []int
		for _, c := range largest(u, k) {
			at = append(at, c.at)
		}
		if !slices.Equal(at, want) {
			t.Errorf("%d largest: %v, want %v", k, at, want)
		}
	}
}

func TestCompare(t *testing.T) {
	a := crowd(1, 1)[0]
	half, back, none := copyOf(a, 0), copyOf(a, 0), copyOf(a, 0)
	scale(half, 0.5)
	scale(back, -1)
	scale(none, 0)
	for name, c := range map[string]struct {
		update, exact    []*tensor.Tensor
		distance, cosine uint32
	}{
		"equal":        {a, a, 0, 1_000_000},
		"half":         {half, a, 500_000, 1_000_000},
		"reversed":     {back, a, 2_000_000, 0},
		"nothing":      {none, a, math.MaxUint32, 0},
		"from nothing": {a, none, math.MaxUint32, 0},
		"both nothing": {none, none, 0, 1_000_000},
	} {
		distance, cosine := Compare(c.update, c.exact).PPM()
		if far := int64(distance) - int64(c.distance); far < -1 || far > 1 || cosine > c.cosine || cosine+1 < c.cosine {
			t.Errorf("%s: distance %d, cosine %d ppm", name, distance, cosine)
		}
	}
	if d, c := Compare(copyOf(a, 0.01), a).PPM(); d < 8_000 || d > 12_000 || c < 999_000 || c > 999_999 {
		t.Errorf("a hundredth of noise: distance %d, cosine %d ppm", d, c)
	}
}

// Where most make clear progress, an update with a fraction of it is flagged; where none does, noise is not.
func TestProgress(t *testing.T) {
	of := func(after ...float64) (list []Losses) {
		for _, a := range after {
			list = append(list, Losses{[2]float64{4, a}, [2]float64{4, a}})
		}
		return list
	}
	nan := math.NaN()
	for name, c := range map[string]struct {
		list []Losses
		want [][]Flag
	}{
		"all alike":      {of(3.5, 3.6, 3.4, 3.5), make([][]Flag, 4)},
		"one is useless": {of(3.5, 3.99, 3.4, 3.5), [][]Flag{nil, {NoProgress}, nil, nil}},
		"nobody gets on": {of(3.99, 3.999, 3.98, 3.97), make([][]Flag, 4)},
		"too few":        {of(3.5, 3.99), make([][]Flag, 2)},
		"nobody":         {nil, [][]Flag{}},
		"broken":         {of(3.5, nan, 3.4, 3.5), [][]Flag{nil, {NoProgress, Harm, OtherData}, nil, nil}},
		"nothing held out": {[]Losses{{Assigned: [2]float64{4, 3}}, {Assigned: [2]float64{4, 3.9}},
			{Assigned: [2]float64{4, 3}}}, [][]Flag{nil, {NoProgress}, nil}},
	} {
		if got := Progress(c.list, Default); !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}

func TestLoss(t *testing.T) {
	nan := math.NaN()
	for name, c := range map[string]struct {
		x    Losses
		want []Flag
	}{
		"honest":           {Losses{[2]float64{4, 3.5}, [2]float64{4, 3.6}}, nil},
		"noise":            {Losses{[2]float64{4, 3.5}, [2]float64{4, 4.1}}, nil},
		"skips":            {Losses{[2]float64{4, 4}, [2]float64{4, 4}}, []Flag{NoProgress}},
		"poison":           {Losses{[2]float64{4, 4.5}, [2]float64{4, 5}}, []Flag{NoProgress, Harm}},
		"wrong data":       {Losses{[2]float64{4, 3.9}, [2]float64{4, 3.5}}, []Flag{OtherData}},
		"nothing held out": {Losses{Assigned: [2]float64{4, 3.9}}, nil},
		"overfits":         {Losses{[2]float64{4, 1}, [2]float64{4, 6}}, []Flag{Harm}},
		"breaks the model": {Losses{[2]float64{4, nan}, [2]float64{4, nan}}, []Flag{NoProgress, Harm, OtherData}},
	} {
		if got := Loss(c.x, Default); !slices.Equal(got, c.want) {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}

// sumOf is the sum of updates, as a mean of them but for its length.
func sumOf(updates [][]*tensor.Tensor) []*tensor.Tensor {
	out := copyOf(updates[0], 0)
	for _, u := range updates[1:] {
		for i, t := range u {
			for j, x := range t.F32() {
				out[i].F32()[j] += x
			}
		}
	}
	return out
}

// Updates agree by the angle that they have with their mean: those with as much noise as direction at sqrt((1+1/n)/2),
// those that are noise at 1/sqrt(n), and it does not matter how long they are.
func TestAgreement(t *testing.T) {
	near := func(what string, got float64, ok bool, want, within float64) {
		t.Helper()
		if !ok || math.Abs(got-want) > within {
			t.Errorf("%s: %v %v, want %v", what, got, ok, want)
		}
	}
	for _, n := range []int{1, 2, 8} {
		u := crowd(n, 3)
		got, ok := Agreement(u, sumOf(u))
		near("half noise", got, ok, math.Sqrt((1+1/float64(n))/2), 0.02)
		again, _ := Agreement(append([][]*tensor.Tensor{copyOf(u[0], 0)}, u[1:]...), sumOf(u))
		long := sumOf(u)
		scale(u[0], 1<<40)
		scale(long, 1<<20)
		longer, _ := Agreement(u, long)
		if got != again || math.Abs(got-longer) > 1e-12 {
			t.Errorf("%d updates: %v, %v again, %v at other lengths", n, got, again, longer)
		}
	}
	var noise [][]*tensor.Tensor
	for seed := range uint64(9) {
		noise = append(noise, crowd(1, seed)[0])
	}
	got, ok := Agreement(noise, sumOf(noise))
	near("noise", got, ok, 1.0/3, 0.02)

	u := crowd(3, 5)
	same := [][]*tensor.Tensor{u[0], copyOf(u[0], 0), copyOf(u[0], 0), copyOf(u[0], 0)}
	scale(same[2], 0)
	same[3][0].F32()[0] = float32(math.NaN())
	got, ok = Agreement(same, u[0])
	near("the same, zeros and no numbers", got, ok, 1, 1e-12)
	scale(same[1], -1)
	got, ok = Agreement(same[:2], u[0])
	near("against each other", got, ok, 0, 1e-12)
	for what, combined := range map[string][]*tensor.Tensor{"zeros": same[2], "no numbers": same[3]} {
		if got, ok := Agreement(u, combined); ok {
			t.Errorf("with %s: %v", what, got)
		}
	}
	if got, ok := Agreement(same[2:], u[0]); ok {
		t.Errorf("of none with a direction: %v", got)
	}
}

// The products of rows are those of dot, to the last bit, whatever their number.
func TestProducts(t *testing.T) {
	for n := range 10 {
		rows := crowd(n, uint64(n))
		for a, row := range products(rows, true) {
			for b, got := range row {
				if want := dot(rows[a], rows[b]); got != want || len(row) != a+1 {
					t.Errorf("%d rows: %v of %d and %d, wanted %v", n, got, a, b, want)
				}
			}
		}
		for a, row := range products(rows, false) {
			if want := dot(rows[a], rows[a]); row[a] != want {
				t.Errorf("%d rows: %v of %d with itself, wanted %v", n, row[a], a, want)
			}
		}
	}
}
