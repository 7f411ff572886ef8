package rollout

import (
	"fmt"
	"testing"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/core/graph"

	"github.com/starling-network/starling/compute/program"
	"github.com/starling-network/starling/compute/record"
	"github.com/starling-network/starling/compute/tensor"
)

// Of groups whose rewards differ each is drawn as often as another and none twice, and none of those that have no
// signal: where there are too few, the last ones are not taken.
func TestGroupsAreDrawnAmongThoseWithSignal(t *testing.T) {
	const units, each, group, length, rounds = 3, 4, 2, 3, 400
	counts := map[int]int{}
	for _, few := range []bool{false, true} {
		for n := range int64(rounds) {
			in := map[string]*tensor.Tensor{"key": key(n)}
			signal := map[int]bool{}
			for u := range units {
				rewards, rows := make([]float32, each*group), make([]int32, each*length)
				answers := make([]int32, each*group)
				for g := range each {
					number := u*each + g
					if number%3 > 0 && (!few || number == 4) {
						rewards[g*group], signal[number] = 1, true
					}
					for i := range length {
						rows[g*length+i] = int32(number)
					}
					answers[g*group], answers[g*group+1] = int32(number), int32(number)
				}
				in[fmt.Sprint("answers", u)] = tensor.FromI32(answers, each, group, 1)
				in[fmt.Sprint("reward", u)] = tensor.FromF32(rewards, each, group)
				in[fmt.Sprint("rows", u)] = tensor.FromI32(rows, each, length)
			}
			const wanted = 3
			out := ran(t, drawing(t, units, each, group, length, wanted), in)
			seen := map[int]bool{}
			for i, taken := range out["taken"].F32() {
				if (taken == 1) != (i < min(wanted, len(signal))) {
					t.Fatalf("of %d groups with signal, number %d is taken: %v", len(signal), i, taken)
				}
				if taken == 0 {
					continue
				}
				number := int(out["rows"].I32()[i*length])
				if !signal[number] || seen[number] || out["answers"].I32()[i*group] != int32(number) ||
					out["reward"].F32()[i*group] != 1 || out["reward"].F32()[i*group+1] != 0 {
					t.Fatalf("group %d is drawn as number %d, after %v", number, i, seen)
				}
				if seen[number] = true; !few {
					counts[number]++
				}
			}
		}
	}
	for number, n := range counts { // 8 groups share 1,200 draws
		if n < 110 || n > 190 {
			t.Errorf("group %d is drawn %d times of %d", number, n, 3*rounds)
		}
	}
	if len(counts) != 8 {
		t.Errorf("drawn: %v", counts)
	}
}

func key(n int64) *tensor.Tensor {
	k := tensor.New(tensor.Make(tensor.Int64, 3))
	copy(tensor.As[int64](k.Bytes()), []int64{7, 1 << 62, n << 32})
	return k
}

// drawing is the program that draws groups of answers of a number of units.
func drawing(t *testing.T, units, each, group, length, n int) *program.Builder {
	t.Helper()
	b := program.NewBuilder()
	values, err := record.Record(b, func(g *graph.Graph) []*graph.Node {
		var inputs []*graph.Node
		for u := range units {
			reward := graph.Parameter(g, fmt.Sprint("reward", u), shapes.Make(dtypes.Float32, each, group))
			inputs = append(inputs, graph.Parameter(g, fmt.Sprint("answers", u), shapes.Make(dtypes.Int32, each, group, 1)),
				reward, graph.Reshape(reward, each, group, 1),
				graph.Parameter(g, fmt.Sprint("rows", u), shapes.Make(dtypes.Int32, each, length)))
		}
		d := GroupsOf(inputs, 4).Draw(n, graph.Parameter(g, "key", shapes.Make(dtypes.Int64, 3)), 5)
		return []*graph.Node{d.Rows, d.Stages[0].Answers, d.Stages[0].Reward, d.Taken}
	})
	if err != nil {
		t.Fatal(err)
	}
	for i, name := range []string{"rows", "answers", "reward", "taken"} {
		b.Output(name, values[i])
	}
	return b
}
