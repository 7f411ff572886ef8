package layered

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/starling-network/starling/compute/generate/section"
	"github.com/starling-network/starling/node/layered/part"
	"github.com/starling-network/starling/node/layered/wire"
)

// A holder that lies and is gone is the one that is found, and not those that compute its texts again.
func TestALiarThatLeavesIsFound(t *testing.T) {
	want, dir := whole(t, 1), written(t, 2, 1)
	var log strings.Builder
	p, list := start(t, dir, 2, 1, 1)
	liar := p[list[1]]
	liar.lies = true
	liar.left.Store(6)
	m, l := front(t, dir, p, list, &log)
	texts(t, m)
	l.checks.Wait()
	for _, h := range l.holders {
		if h.excluded != (h.addr == list[1]) {
			t.Errorf("holder %s: excluded %t", h.addr, h.excluded)
		}
	}
	liar.left.Store(-1)
	if got := texts(t, m); got != want {
		t.Errorf("%q, the whole model writes %q: %s", got, want, &log)
	}
}

// A text is checked against the holder that computed it, also if another holder has the stage when it ends.
func TestOfAnEndedTextItsHolderIsFound(t *testing.T) {
	dir := written(t, 1, 1)
	var log strings.Builder
	p, list := start(t, dir, 1, 1, 1)
	p[list[0]].lies = true
	_, l := front(t, dir, p, list, &log)
	pass := func(id uint64) section.Pass {
		return section.Pass{Rows: []section.Row{{ID: id, Count: 1, Limit: 9}}, Hidden: make([]float32, 16)}
	}
	if _, err := l.Run(pass(1)); err != nil {
		t.Fatal(err)
	}
	p[list[0]].left.Store(0)
	if _, err := l.Run(pass(2)); err != nil {
		t.Fatal(err)
	}
	p[list[0]].left.Store(-1)
	p[list[0]].lies = false // from now on
	l.End(1)
	l.checks.Wait()
	for _, h := range l.holders {
		if h.excluded != (h.addr == list[0]) {
			t.Errorf("holder %s: excluded %t: %s", h.addr, h.excluded, &log)
		}
	}
}

// A text that a holder has no room for fails at once, and the others stay where they are.
func TestATextWithoutRoomDisturbsNoOther(t *testing.T) {
	dir := written(t, 1, 1)
	var log strings.Builder
	p, list := start(t, dir, 1)
	_, l := front(t, dir, p, list, &log)
	l.Wait = 1e12
	h := p[list[0]].holder
	h.memory = h.held.section.Bytes(1, 64)
	pass := func(id uint64, start int) section.Pass {
		return section.Pass{Rows: []section.Row{{ID: id, Start: start, Count: 1, Limit: 9}}, Hidden: make([]float32, 16)}
	}
	if _, err := l.Run(pass(1, 0)); err != nil {
		t.Fatal(err)
	}
	talk := l.stages[0].talk
	if _, err := l.Run(pass(2, 0)); err == nil || !strings.Contains(err.Error(), "no room") {
		t.Error(err)
	}
	l.End(2)
	if _, err := l.Run(pass(1, 1)); err != nil || l.stages[0].talk != talk {
		t.Errorf("the first text: %v, in the same dialogue: %t", err, l.stages[0].talk == talk)
	}
}

// Two addresses of one peer are not two holders, of which one confirms the other.
func TestAHolderConfirmsNotItself(t *testing.T) {
	dir := written(t, 1, 1)
	var log strings.Builder
	p, _ := start(t, dir, 1, 1)
	list := []string{"/ip4/1.1.1.1/tcp/1/p2p/liar", "/ip4/1.1.1.1/udp/1/quic-v1/p2p/liar", "/ip4/1.1.1.2/tcp/1/p2p/honest"}
	for i, from := range []string{"0-1", "0-1", "1-1"} {
		p[list[i]] = p[from]
	}
	read, err := part.Read(filepath.Join(dir, part.Name(1)))
	if err != nil {
		t.Fatal(err)
	}
	for _, x := range read.Tensors { // the liar lies alike each time
		x.F32()[0]++
	}
	if p["0-1"].holder.held.section, err = section.New(read.Layout, 1, read.Tensors, 1); err != nil {
		t.Fatal(err)
	}
	m, l := front(t, dir, p, list, &log)
	texts(t, m)
	l.checks.Wait()
	if i := slices.IndexFunc(l.holders, func(h *holder) bool { return h.excluded }); i >= 0 {
		t.Errorf("%s is excluded by one liar against one other: %s", l.holders[i].addr, &log)
	}
	if !strings.Contains(log.String(), "no two agree") {
		t.Error(log.String())
	}
}

// A front fills its part of the memory of a holder, and not that of others.
func TestAFrontLeavesRoomToOthers(t *testing.T) {
	dir := written(t, 1, 1)
	h, err := Open(filepath.Join(dir, part.Name(1)), 1, 1<<20)
	if err != nil {
		t.Fatal(err)
	}
	h.memory = 2 * h.held.section.Bytes(1, 64) // of each front
	begin := func(d *Dialogue, id uint64) bool {
		row := section.Row{ID: id, Count: 1, Limit: 9}
		return d.Answer(wire.Question{Kind: wire.KindPass, Passes: []section.Pass{{Rows: []section.Row{row},
			Hidden: make([]float32, 16)}}}.Encode())[0] == wire.KindPass
	}
	greeted := func(from string) *Dialogue {
		d := h.Dialogue(from)
		d.Answer(wire.Question{Kind: wire.KindHello, Model: h.current().hello.Weights}.Encode())
		return d
	}
	one, two, other := greeted("a"), greeted("a"), greeted("b")
	if !begin(one, 1) || !begin(two, 2) {
		t.Fatal("a front does not get its part")
	}
	if begin(one, 3) {
		t.Error("a front takes the part of another by a second dialogue")
	}
	if !begin(other, 1) {
		t.Error("no room is left for the other front")
	}
	one.End()
	if !begin(two, 4) {
		t.Error("room of a dialogue that has ended is not free")
	}
}

// A holder remembers no numbers of sequences that did not begin.
func TestRefusedSequencesAreForgotten(t *testing.T) {
	dir := written(t, 1, 1)
	h, err := Open(filepath.Join(dir, part.Name(1)), 1, 1<<20)
	if err != nil {
		t.Fatal(err)
	}
	d := h.Dialogue("a")
	d.Answer(wire.Question{Kind: wire.KindHello, Model: h.current().hello.Weights}.Encode())
	for id := uint64(1); id < 20; id += 2 {
		rows := []section.Row{{ID: id, Count: 1, Limit: 9}, {ID: id + 1, Start: 1, Count: 1, Limit: 9}}
		answer := d.Answer(wire.Question{Kind: wire.KindPass, Passes: []section.Pass{{Rows: rows,
			Hidden: make([]float32, 32)}}}.Encode())
		if !strings.Contains(string(answer), "has not begun") {
			t.Fatalf("%q", answer)
		}
	}
	if len(d.ids) > 0 {
		t.Errorf("%d numbers of sequences that did not begin", len(d.ids))
	}
}

// Values that are no numbers end a text, and its stages are computed again though it was not drawn.
func TestValuesThatAreNoNumbers(t *testing.T) {
	dir := written(t, 2, 1)
	var log strings.Builder
	p, list := start(t, dir, 2, 1, 1)
	p[list[1]].nan = true
	m, l := front(t, dir, p, list, &log)
	l.CheckPPM = 0
	if got := texts(t, m); !strings.Contains(got[0], "no finite number") {
		t.Errorf("%q", got)
	}
	l.checks.Wait()
	for _, h := range l.holders {
		if h.excluded != (h.addr == list[1]) {
			t.Errorf("holder %s: excluded %t: %s", h.addr, h.excluded, &log)
		}
	}
}
