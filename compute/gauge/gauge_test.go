package gauge

import (
	"testing"

	"github.com/starling-network/starling/canon"
	"github.com/starling-network/starling/compute/cpu"
)

// The result depends on seed, segment and steps, and on nothing else.
func TestSegment(t *testing.T) {
	seed := canon.Sum("seed")
	want := Segment(seed, 3, 5, 1)
	if got := Segment(seed, 3, 5, 2); got != want {
		t.Errorf("on two threads %s, on one %s", got.Short(), want.Short())
	}
	for name, other := range map[string]canon.Digest{
		"segment": Segment(seed, 4, 5, 1), "steps": Segment(seed, 3, 6, 1), "seed": Segment(canon.Sum("other"), 3, 5, 1),
	} {
		if other == want {
			t.Errorf("the %s does not matter", name)
		}
	}
	if got, pinned := want.String(), "4dced0a3456f28ee6c63a5842d30004791b6b18ad1fd721442f9d02c6f7d273f"; got != pinned {
		t.Errorf("the result is %s, want %s", got, pinned)
	}
}

// The program of a device has the results of the segments.
func TestProgram(t *testing.T) {
	const segments, steps = 2, 3
	p, err := Program(segments)
	if err != nil {
		t.Fatal(err)
	}
	exec, err := cpu.Compile(p, 1)
	if err != nil {
		t.Fatal(err)
	}
	seed := canon.Sum("seed")
	in := Inputs(seed, 2, segments)
	for range steps {
		out, err := exec.Run(in)
		if err != nil {
			t.Fatal(err)
		}
		in[State] = out[State].Clone()
	}
	for i, got := range Results(in[State]) {
		if want := Segment(seed, 2+uint32(i), steps, 1); got != want {
			t.Errorf("segment %d: %s, want %s", 2+i, got.Short(), want.Short())
		}
	}
}

func BenchmarkSegment(b *testing.B) {
	const steps = 16
	for b.Loop() {
		Segment(canon.Digest{}, 0, steps, 1)
	}
	b.ReportMetric(float64(b.N)*steps*2*Side*Side*Side/b.Elapsed().Seconds()/1e9, "GFLOP/s")
}
