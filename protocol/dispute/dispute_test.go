package dispute

import (
	"encoding/binary"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"testing"

	"github.com/starling-network/starling/canon"
)

const (
	worker   = "starling1worker"
	verifier = "starling1verifier"
)

// digest is a digest of its own for every name and numbers.
func digest(name string, wrong bool, numbers ...int) canon.Digest {
	b := []byte(name)
	if wrong {
		b = append(b, '!')
	}
	for _, n := range numbers {
		b = binary.BigEndian.AppendUint32(b, uint32(n))
	}
	return canon.Leaf(b)
}

// fake is the execution of a unit in which some things are not as they should be. Everything from the inner step lie on
// differs from the truth; at that step, from the operator op on, or, if bind is set, only the state after it.
type fake struct {
	steps      []uint32 // of segments
	operators  int
	parameters int
	parts      int  // of the output of every operator but the first, and of the payload of every parameter but the first
	start      bool // the first state is wrong
	lie        int  // -1: none
	op         int
	part       int // of op or update, the first that is wrong
	bind       bool
	update     int // first parameter whose payload is wrong; -1: none
}

func truth(steps []uint32, operators, parameters int) fake {
	return fake{steps: steps, operators: operators, parameters: parameters, parts: 1, lie: -1, update: -1}
}

func (f fake) root(after uint32) canon.Digest {
	wrong := f.start || f.lie >= 0 && int(after) > f.lie
	return digest("state", wrong, int(after))
}

func (f fake) Steps(after []uint64) (out []canon.Digest, err error) {
	for _, s := range after {
		out = append(out, f.root(uint32(s)))
	}
	return out, nil
}

func (f fake) output(step uint32, op int) canon.Digest {
	return f.made(Claim{Kind: Tile, Step: step, Index: uint32(op)}, f.Parts(Claim{Kind: Tile, Index: uint32(op)}))
}

func (f fake) Parts(c Claim) uint64 {
	index := c.Index
	if index == 0 {
		return 1
	}
	return uint64(f.parts)
}

// made is the partial state of an output or a payload after some parts.
func (f fake) made(c Claim, parts uint64) canon.Digest {
	if c.Kind == Update {
		first := uint64(f.part)
		if int(c.Index) > f.update {
			first = 0
		}
		return digest("payload", f.update >= 0 && int(c.Index) >= f.update && parts > first, int(c.Index), int(parts))
	}
	step, op := int(c.Step), int(c.Index)
	wrong := f.start || f.lie >= 0 && (step > f.lie || step == f.lie && !f.bind &&
		(op > f.op || op == f.op && int(parts) > f.part))
	return digest("made", wrong, step, op, int(parts))
}

func (f fake) Partial(c Claim, after []uint64) (out []canon.Digest, err error) {
	for _, n := range after {
		out = append(out, f.made(c, n))
	}
	return out, nil
}

func (f fake) payload(p int) canon.Digest {
	return f.made(Claim{Kind: Update, Index: uint32(p)}, f.Parts(Claim{Kind: Update, Index: uint32(p)}))
}

func (f fake) Trace(step uint32) (*canon.Tree, error) {
	leaves := make([]canon.Digest, f.operators)
	for i := range leaves {
		leaves[i] = f.output(step, i)
	}
	return canon.NewTree(leaves), nil
}

func (f fake) Result(Kind) (*canon.Tree, error) {
	leaves := make([]canon.Digest, f.parameters)
	for i := range leaves {
		leaves[i] = f.payload(i)
	}
	return canon.NewTree(leaves), nil
}

// Leaf brings the proofs of the operator before and of the first one.
func (f fake) Leaf(c Claim, prove func(int) (canon.Proof, error)) ([]byte, error) {
	var proofs []canon.Proof
	if c.Kind == Tile && c.Index > 0 {
		for _, i := range []int{0, int(c.Index) / 2, int(c.Index) - 1} {
			p, err := prove(i)
			if err != nil {
				return nil, err
			}
			proofs = append(proofs, p)
		}
	}
	return canon.MustMarshal(proofs), nil
}

// Judge knows the truth. Its receiver is the true execution.
func (f fake) Judge(c Claim, payload []byte) (Ruling, error) {
	switch c.Kind {
	case Start:
		return Ruling{Right: c.After == f.root(0), Computed: f.root(0)}, nil
	case Binding:
		t, _ := f.Trace(c.Step)
		if t.Root() != c.Trace {
			return Ruling{}, errors.New("the trace is not the one shown")
		}
		return Ruling{Right: c.After == f.root(c.Step+1), Computed: f.root(c.Step + 1)}, nil
	case Update:
		return f.rule(c)
	}
	var proofs []canon.Proof
	if err := canon.Unmarshal(payload, &proofs); err != nil {
		return Ruling{}, err
	}
	if c.Index > 0 {
		for k, i := range []int{0, int(c.Index) / 2, int(c.Index) - 1} {
			if len(proofs) != 3 || !proofs[k].Verify(c.Trace, f.operators, i, f.output(c.Step, i)) {
				return Ruling{}, fmt.Errorf("operand %d is not proven", i)
			}
		}
	}
	if c.Prior != f.root(c.Step) {
		return Ruling{}, errors.New("the state before is not agreed")
	}
	return f.rule(c)
}

// rule compares a claim with the result that follows from the agreed values.
func (f fake) rule(c Claim) (Ruling, error) {
	if agreed := f.made(c, c.Part); c.Part > 0 && c.Before != agreed {
		return Ruling{}, errors.New("what there is before the part is not agreed")
	}
	made := f.made(c, c.Part+1)
	return Ruling{Right: c.Output == made, Computed: made}, nil
}

// config is the commitment of an execution's asserter.
func (f fake) config() Config {
	u, _ := f.Result(Update)
	c := Config{
		Job: "job", Round: 3, Unit: 1, Asserter: worker, Challenger: verifier, Base: digest("base", false), Steps: f.steps,
		Segments: []canon.Digest{f.root(0)}, Update: u.Root(),
		Operators: uint32(f.operators), Parameters: uint32(f.parameters), MoveBlocks: 10,
	}
	done := uint32(0)
	for _, n := range f.steps {
		done += n
		c.Segments = append(c.Segments, f.root(done))
	}
	return c
}

// segment is the first committed root in which two executions differ.
func segment(a, b fake) uint32 {
	x, y := a.config(), b.config()
	for i := range x.Segments {
		if x.Segments[i] != y.Segments[i] {
			return uint32(i)
		}
	}
	return uint32(len(x.Segments))
}

func next(g Dispute, asserter, challenger Oracle) (string, Move, error) {
	if g.Turn == Asserter {
		m, err := NextAsserterMove(g, asserter)
		return g.Config.Asserter, m, err
	}
	m, err := NextChallengerMove(g, challenger)
	return g.Config.Challenger, m, err
}

// settle plays a game to its end over the wire form of moves and of the game.
func settle(t *testing.T, g Dispute, asserter, challenger Oracle, r Referee) Dispute {
	t.Helper()
	for height := int64(101); g.Stage != Over; height++ {
		from, m, err := next(g, asserter, challenger)
		if err != nil {
			t.Fatalf("%s has no move at stage %d: %v", g.Turn, g.Stage, err)
		}
		m, err = Decode(m.Encode())
		if err != nil {
			t.Fatal(err)
		}
		before := canon.MustMarshal(g)
		after, err := g.Apply(height, from, m, r)
		if err != nil {
			t.Fatalf("stage %d: %v", g.Stage, err)
		}
		if string(canon.MustMarshal(g)) != string(before) {
			t.Fatalf("stage %d: a move changed the game it was made in", g.Stage)
		}
		g = Dispute{}
		if err := canon.Unmarshal(canon.MustMarshal(after), &g); err != nil {
			t.Fatal(err)
		}
	}
	return g
}

func open(t *testing.T, c Config, segment uint32) Dispute {
	t.Helper()
	g, err := Open(c, segment, 100)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// lies lists executions that differ from the truth in every possible first place.
func lies(honest fake) []fake {
	var out []fake
	add := func(change func(f *fake)) {
		f := honest
		change(&f)
		out = append(out, f)
	}
	add(func(f *fake) { f.start = true })
	total := 0
	for _, n := range honest.steps {
		total += int(n)
	}
	places := func(int) []int { return slices.Compact([]int{0, 1, honest.parts / 2, honest.parts - 1}) }
	for step := range total {
		add(func(f *fake) { f.lie, f.bind = step, true })
		for op := range honest.operators {
			for _, part := range places(op) {
				if int(honest.Parts(Claim{Kind: Tile, Index: uint32(op)})) > part {
					add(func(f *fake) { f.lie, f.op, f.part = step, op, part })
				}
			}
		}
	}
	for p := range honest.parameters {
		for _, part := range places(p) {
			if int(honest.Parts(Claim{Kind: Update, Index: uint32(p)})) > part {
				add(func(f *fake) { f.update, f.part = p, part })
			}
		}
	}
	return out
}

func (f fake) kind() Kind {
	switch {
	case f.start:
		return Start
	case f.lie >= 0 && f.bind:
		return Binding
	case f.lie >= 0:
		return Tile
	}
	return Update
}

func TestLiarLosesWhereverItLies(t *testing.T) {
	cut := func(f fake, parts int) fake { f.parts = parts; return f }
	for _, honest := range []fake{
		cut(truth([]uint32{2}, 3, 2), 2), cut(truth([]uint32{1}, 4, 1), 16), cut(truth([]uint32{1}, 5, 2), 64),
		cut(truth([]uint32{1}, 3, 3), 65),
		cut(truth([]uint32{1}, 2, 2), 5000), cut(truth([]uint32{1}, 2, 2), 1<<30), truth([]uint32{1}, 1, 1),
		truth([]uint32{1, 3}, 17, 2), truth([]uint32{20, 20, 7}, 5, 16), truth([]uint32{40}, 3, 40),
		truth([]uint32{1}, 260, 1),
	} {
		for _, liar := range lies(honest) {
			k := segment(honest, liar)
			g := settle(t, open(t, liar.config(), k), liar, honest, honest)
			if !g.Verdict.AsserterLies || g.Loser() != worker || g.Verdict.Reason != Recomputed ||
				g.Verdict.Leaf != string(liar.kind()) {
				t.Fatalf("asserter %+v: %+v", liar, *g.Verdict)
			}
			index := map[Kind]int{Tile: liar.op, Update: liar.update}[liar.kind()]
			if int(g.Verdict.Operator) != index || int(g.Verdict.Part) != liar.part {
				t.Fatalf("asserter %+v: ended at %+v", liar, *g.Verdict)
			}
			g = settle(t, open(t, honest.config(), k), honest, liar, honest)
			if g.Verdict.AsserterLies || g.Loser() != verifier {
				t.Fatalf("challenger %+v: %+v", liar, *g.Verdict)
			}
		}
	}
}

func TestSilenceLosesAtEveryTurn(t *testing.T) {
	honest := truth([]uint32{20, 20}, 300, 20)
	honest.parts = 40
	liar := honest
	liar.lie, liar.op, liar.part = 25, 123, 30
	g := open(t, liar.config(), 2)
	turns := map[Party]int{}
	for height := int64(101); g.Stage != Over; height++ {
		if same := g.Tick(g.Deadline); !reflect.DeepEqual(same, g) {
			t.Fatal("the deadline itself is still in time")
		}
		late := g.Tick(g.Deadline + 1)
		if v := late.Verdict; v == nil || v.Reason != Silence || v.AsserterLies != (g.Turn == Asserter) ||
			late.Stage != Over {
			t.Fatalf("stage %d: %+v", g.Stage, v)
		}
		from, m, err := next(g, liar, honest)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := g.Apply(g.Deadline+1, from, m, honest); !errors.Is(err, ErrLate) {
			t.Fatalf("a late move: %v", err)
		}
		turns[g.Turn]++
		if g, err = g.Apply(height, from, m, honest); err != nil {
			t.Fatal(err)
		}
	}
	if turns[Asserter] < 4 || turns[Challenger] < 4 {
		t.Fatalf("only %v turns were tried", turns)
	}
	if same := g.Tick(1 << 40); !reflect.DeepEqual(same, g) {
		t.Fatal("a decided game changed")
	}
}

// illegal returns moves that are wrong in a game, made from the right one.
func illegal(m Move) []Move {
	other := []canon.Digest{digest("other", false)}
	out := []Move{{}, {States: &States{}}, {Tree: &Tree{}}, {Nodes: &Nodes{}}, {States: &States{Digests: other}},
		{Tree: &Tree{Top: other[0], Children: other}}, {Nodes: &Nodes{Children: other}}, {Pick: &Pick{Index: 1 << 31}},
		{Pick: &Pick{Index: canon.Fanout * canon.Fanout}}, {Leaf: &Leaf{Index: 1<<32 - 1}},
		{Leaf: &Leaf{Index: canon.Fanout * canon.Fanout}}}
	flip := func(list []canon.Digest) []canon.Digest {
		list = slices.Clone(list)
		list[len(list)-1][5] ^= 1
		return list
	}
	switch {
	case m.States != nil:
		out = append(out, Move{States: &States{Digests: m.States.Digests[1:]}},
			Move{States: &States{Digests: append(other, m.States.Digests...)}})
	case m.Tree != nil:
		out = append(out, Move{Tree: &Tree{Top: m.Tree.Top, Children: flip(m.Tree.Children)}},
			Move{Tree: &Tree{Top: other[0], Children: m.Tree.Children}},
			Move{Tree: &Tree{Top: m.Tree.Top}})
	case m.Nodes != nil:
		out = append(out, Move{Nodes: &Nodes{Children: flip(m.Nodes.Children)}},
			Move{Nodes: &Nodes{Children: m.Nodes.Children[1:]}})
	case m.Leaf != nil:
		out = append(out, Move{Leaf: &Leaf{Index: m.Leaf.Index, Payload: make([]byte, MaxLeaf+1)}},
			Move{Pick: &Pick{Index: m.Leaf.Index}})
	}
	if m.Leaf == nil && m.Bind == nil {
		out = append(out, Move{Leaf: &Leaf{}})
	}
	return out
}

func TestIllegalMovesLeaveTheGame(t *testing.T) {
	honest := truth([]uint32{20, 20}, 300, 20)
	honest.parts = 40
	for _, liar := range lies(honest) {
		if liar.lie%13 != 3 || liar.op%70 != 29 {
			continue
		}
		g := open(t, liar.config(), segment(honest, liar))
		for height := int64(101); g.Stage != Over; height++ {
			from, m, err := next(g, liar, honest)
			if err != nil {
				t.Fatal(err)
			}
			before := canon.MustMarshal(g)
			for i, bad := range illegal(m) {
				after, err := g.Apply(height, from, bad, honest)
				if !errors.Is(err, ErrMove) || string(canon.MustMarshal(after)) != string(before) {
					t.Fatalf("stage %d, illegal move %d: %v", g.Stage, i, err)
				}
			}
			for _, stranger := range []string{"", "starling1other",
				map[string]string{worker: verifier, verifier: worker}[from]} {
				if _, err := g.Apply(height, stranger, m, honest); !errors.Is(err, ErrNotYours) {
					t.Fatalf("stage %d: a move of %q: %v", g.Stage, stranger, err)
				}
			}
			if g, err = g.Apply(height, from, m, honest); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := g.Apply(200, verifier, Move{Pick: &Pick{}}, honest); !errors.Is(err, ErrOver) {
			t.Fatalf("a move after the verdict: %v", err)
		}
	}
}

// A challenger that brings a useless payload, a proof for another leaf among them, loses.
func TestBadLeafLoses(t *testing.T) {
	honest := truth([]uint32{5}, 40, 1)
	liar := honest
	liar.lie, liar.op = 2, 33
	for name, spoil := range map[string]func(p []byte) []byte{
		"empty":     func([]byte) []byte { return nil },
		"truncated": func(p []byte) []byte { return p[:len(p)-1] },
		"flipped":   func(p []byte) []byte { p = slices.Clone(p); p[len(p)/2] ^= 1; return p },
		"trailing":  func(p []byte) []byte { return append(slices.Clone(p), 0) },
		"no proofs": func([]byte) []byte { return canon.MustMarshal([]canon.Proof{}) },
		"odd proof": func([]byte) []byte { return canon.MustMarshal([]canon.Proof{{}, {{}, {}}, nil}) },
		"long proof": func([]byte) []byte {
			return canon.MustMarshal([]canon.Proof{make(canon.Proof, 1000), {make([]canon.Digest, 1000)}, nil})
		},
	} {
		g := open(t, liar.config(), 1)
		for height := int64(101); g.Stage != Over; height++ {
			from, m, err := next(g, liar, honest)
			if err != nil {
				t.Fatal(err)
			}
			if m.Leaf != nil {
				m.Leaf.Payload = spoil(m.Leaf.Payload)
			}
			if g, err = g.Apply(height, from, m, honest); err != nil {
				t.Fatal(err)
			}
		}
		if g.Verdict.AsserterLies || g.Verdict.Reason != BadLeaf {
			t.Errorf("%s: %+v", name, *g.Verdict)
		}
	}
}

func TestOpenRefuses(t *testing.T) {
	good := truth([]uint32{4, 4}, 10, 2).config()
	for name, change := range map[string]func(c *Config) uint32{
		"no such segment":  func(*Config) uint32 { return 4 },
		"no steps":         func(c *Config) uint32 { c.Steps = nil; return 0 },
		"empty segment":    func(c *Config) uint32 { c.Steps = []uint32{4, 0}; return 0 },
		"too few roots":    func(c *Config) uint32 { c.Segments = c.Segments[:2]; return 0 },
		"one party":        func(c *Config) uint32 { c.Challenger = c.Asserter; return 0 },
		"no operators":     func(c *Config) uint32 { c.Operators = 0; return 0 },
		"too many":         func(c *Config) uint32 { c.Parameters = MaxOperators + 1; return 0 },
		"no time for move": func(c *Config) uint32 { c.MoveBlocks = 0; return 0 },
	} {
		c := good
		segment := change(&c)
		if _, err := Open(c, segment, 1); !errors.Is(err, ErrConfig) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestPressWithoutDifference(t *testing.T) {
	honest := truth([]uint32{20}, 30, 2)
	g := open(t, honest.config(), 1)
	m, err := NextAsserterMove(g, honest)
	if err != nil {
		t.Fatal(err)
	}
	if g, err = g.Apply(101, worker, m, honest); err != nil {
		t.Fatal(err)
	}
	if _, err := NextChallengerMove(g, honest); !errors.Is(err, ErrAgree) {
		t.Fatalf("press: %v", err)
	}
}

func FuzzDecode(f *testing.F) {
	honest := truth([]uint32{20, 20}, 300, 20)
	honest.parts = 20
	liar := honest
	liar.lie, liar.op, liar.part = 25, 123, 18
	var games []Dispute
	for g := mustOpen(liar.config()); g.Stage != Over; {
		games = append(games, g)
		from, m, _ := next(g, liar, honest)
		f.Add(uint8(len(games)), m.Encode())
		g, _ = g.Apply(101, from, m, honest)
	}
	f.Fuzz(func(t *testing.T, stage uint8, b []byte) {
		m, err := Decode(b)
		if err != nil {
			if !errors.Is(err, ErrEncoding) {
				t.Fatal(err)
			}
			return
		}
		if string(m.Encode()) != string(b) {
			t.Fatal("accepted bytes that Encode does not produce")
		}
		g := games[int(stage)%len(games)]
		before := canon.MustMarshal(g)
		for _, from := range []string{worker, verifier} {
			after, err := g.Apply(101, from, m, honest)
			if string(canon.MustMarshal(g)) != string(before) {
				t.Fatal("the game changed")
			}
			if err == nil && after.Verdict != nil && after.Verdict.AsserterLies && m.Leaf == nil {
				t.Fatal("a verdict without its leaf")
			}
		}
	})
}

func mustOpen(c Config) Dispute {
	g, err := Open(c, 2, 100)
	if err != nil {
		panic(err)
	}
	return g
}
