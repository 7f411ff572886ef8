package registrant

import (
	"errors"
	"reflect"
	"testing"

	"github.com/starling-network/starling/canon"
	"github.com/starling-network/starling/protocol/registry"
	"github.com/starling-network/starling/protocol/run/crew"
	"github.com/starling-network/starling/role"
)

func view(height int64, all ...registry.Measurement) View {
	return View{
		Height: height, Params: registry.DefaultParams(), Measurements: all,
		Self: registry.Participant{ID: "a", Roles: []crew.Role{crew.Worker}},
	}
}

func expect(t *testing.T, got []role.Action, want ...role.Action) {
	t.Helper()
	if len(got)+len(want) > 0 && !reflect.DeepEqual(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

// results of a gauge; nothing is computed in these tests.
func results(g Gauge) (list []canon.Digest) {
	for i := range g.Count {
		list = append(list, canon.Sum("result", g.Seed[:], []byte{byte(g.First + i)}))
	}
	return list
}

// drawn is a draw of checkers.
func drawn(ids ...string) registry.Draw {
	return func(canon.Digest, int, []string) ([]string, error) { return ids, nil }
}

// A whole measurement by the rules: each participant that is asked does its part, once, also if it restarts in the
// middle.
func TestMeasurement(t *testing.T) {
	a, b := New("a", true), New("b", false)
	expect(t, a.Block(view(10)), Ask{})
	expect(t, a.Block(view(11))) // it is under way
	m, err := registry.Ask("a", 3, 12)
	if err != nil {
		t.Fatal(err)
	}
	a.Ended(Ask{}, nil, nil)
	expect(t, a.Block(view(12, m)))
	params := registry.DefaultParams()
	m, _, _, _ = m.Tick(params, drawn("b"), canon.Sum("one"), 13, 1000)
	g := Gauge{m.Seed, 3, 0, registry.Segments}
	expect(t, a.Block(view(13, m)), g)
	a.Ended(g, nil, errors.New("interrupted"))
	expect(t, a.Block(view(14, m))) // it rests
	expect(t, a.Block(view(20, m)), g)
	a.Ended(g, results(g), nil)
	answer := Answer{registry.Root("a", m.Seed, results(g))}
	expect(t, a.Block(view(21, m)), answer)
	if m, err = m.Answer(answer.Root, 22, 9000); err != nil {
		t.Fatal(err)
	}
	a.Ended(answer, nil, nil)
	expect(t, a.Block(view(22, m)))
	m, _, _, _ = m.Tick(params, drawn("b"), canon.Sum("two"), 23, 10_000)
	expect(t, a.Block(view(23, m)))
	var found []canon.Digest
	for _, segment := range m.Picks {
		sample := Gauge{m.Seed, 3, segment, 1}
		expect(t, b.Block(view(23, m)), sample)
		b.Ended(sample, results(sample), nil)
		found = append(found, results(sample)[0])
	}
	check := Check{"a", m.Seed, m.Sample("b", found)}
	expect(t, b.Block(view(24, m)), check)
	if m, err = m.Check("b", check.Result, 25); err != nil {
		t.Fatal(err)
	}
	expect(t, b.Block(view(25, m)))
	again := New("a", true)
	expect(t, again.Block(view(25, m)), g)
	again.Ended(g, results(g), nil)
	open := Open{results(g)}
	expect(t, again.Block(view(26, m)), open)
	expect(t, a.Block(view(26, m)), open)
	if out, err := m.Open(open.Results); err != nil || out.Rate == 0 {
		t.Errorf("%+v, %v", out, err)
	}
	a.Ended(open, nil, nil)
	a.Block(view(27))
	if len(a.results) > 0 {
		t.Error("results are kept after the measurement")
	}
}

// It asks only when it has nothing else to do, and not again for a while if nothing came of it.
func TestAsks(t *testing.T) {
	busy, rated, verifier := view(10), view(10), view(10)
	busy.Busy, rated.Self.Rate, verifier.Self.Roles = true, 1, []crew.Role{crew.Verifier}
	for _, v := range []View{busy, rated, verifier} {
		expect(t, New("a", true).Block(v))
	}
	expect(t, New("a", false).Block(view(10)))
	a := New("a", true)
	expect(t, a.Block(view(10)), Ask{})
	a.Ended(Ask{}, nil, nil)
	for height := int64(11); height <= 10+4*registry.DefaultParams().MeasureBlocks; height++ {
		expect(t, a.Block(view(height)))
	}
	expect(t, a.Block(view(11+4*registry.DefaultParams().MeasureBlocks)), Ask{})
}

// There is one heartbeat for every window, at whichever block it begins, and none without a tier.
func TestBeats(t *testing.T) {
	r, params := New("a", false), registry.DefaultParams()
	u := registry.Uptime{From: 1}
	for height := int64(1); height < 10*params.BeatBlocks; height++ {
		v := view(height)
		v.Uptime = &u
		for _, a := range r.Block(v) {
			after, err := u.Heartbeat(params, height+1)
			if err != nil {
				t.Fatalf("height %d: %v", height, err)
			}
			u = after
			r.Ended(a, nil, nil)
		}
	}
	if u.Beats != 11 || u.PPM(params, 10*params.BeatBlocks-1) != 1_000_000 {
		t.Errorf("%+v", u)
	}
}

// A pause begins no measurement of the machine, and gives one up whose program it interrupts: the time would contain
// the pause. A computed result is answered, and others are answered during a pause, too.
func TestPause(t *testing.T) {
	paused := func(height int64, all ...registry.Measurement) View {
		v := view(height, all...)
		v.Paused = true
		return v
	}
	expect(t, New("a", true).Block(paused(10)))
	m, err := registry.Ask("a", 3, 12)
	if err != nil {
		t.Fatal(err)
	}
	params := registry.DefaultParams()
	m, _, _, _ = m.Tick(params, drawn("b"), canon.Sum("one"), 13, 1000)
	g := Gauge{m.Seed, 3, 0, registry.Segments}
	a, quick := New("a", true), New("a", true)
	expect(t, a.Block(view(13, m)), g)
	expect(t, quick.Block(view(13, m)), g)
	quick.Ended(g, results(g), nil)
	expect(t, quick.Block(paused(14, m)), Answer{registry.Root("a", m.Seed, results(g))})
	expect(t, a.Block(paused(14, m)))
	a.Ended(g, nil, errors.New("stopped"))
	expect(t, a.Block(view(30, m)))
	a.Block(view(31))
	if len(a.dropped) > 0 {
		t.Error("a measurement that ended is kept")
	}
	if m, err = m.Answer(registry.Root("a", m.Seed, results(g)), 22, 9000); err != nil {
		t.Fatal(err)
	}
	m, _, _, _ = m.Tick(params, drawn("b"), canon.Sum("two"), 23, 10_000)
	expect(t, New("b", false).Block(paused(24, m)), Gauge{m.Seed, 3, m.Picks[0], 1})
}

// A measurement that found too little for a place without a stake is tried again after a while; one of a worker with a
// stake is not.
func TestLittleIsMeasuredAgain(t *testing.T) {
	for _, earning := range []bool{true, false} {
		r := New("a", true)
		slow := func(height int64) View {
			v := view(height)
			v.Params.Earning = registry.DefaultEarning()
			v.Self.Earning, v.Self.Rate = earning, v.Params.Earning.Rate-1
			return v
		}
		var want []role.Action
		if earning {
			want = []role.Action{Ask{}}
		}
		expect(t, r.Block(slow(10)), want...)
		enough := slow(11)
		enough.Self.Rate++
		expect(t, New("a", true).Block(enough))
	}
}
