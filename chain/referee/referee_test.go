package referee

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/starling-network/starling/canon"
	"github.com/starling-network/starling/chain/referee/evidence"
	"github.com/starling-network/starling/chain/referee/question"
	"github.com/starling-network/starling/chain/referee/witness"
	"github.com/starling-network/starling/compute/admit"
	"github.com/starling-network/starling/compute/data"
	"github.com/starling-network/starling/compute/data/source"
	"github.com/starling-network/starling/compute/data/tokenizer"
	"github.com/starling-network/starling/compute/model"
	"github.com/starling-network/starling/compute/model/architecture"
	"github.com/starling-network/starling/compute/optimizer"
	"github.com/starling-network/starling/compute/philox"
	"github.com/starling-network/starling/compute/program"
	"github.com/starling-network/starling/compute/tensor"
	"github.com/starling-network/starling/compute/train"
	"github.com/starling-network/starling/exchange/aggregate"
	"github.com/starling-network/starling/exchange/codec"
	"github.com/starling-network/starling/exchange/outer"
	"github.com/starling-network/starling/protocol/dispute"
	"github.com/starling-network/starling/protocol/run/terms"
	"github.com/starling-network/starling/protocol/run/work"
)

const (
	worker      = "starling1worker"
	verifier    = "starling1verifier"
	shardTokens = 1000
	unit        = 1
)

// size of a test job.
type size struct{ layers, width, heads, batch, length, steps, segment int }

var tiny = size{layers: 1, width: 16, heads: 2, batch: 2, length: 8, steps: 7, segment: 3}

func corpus(t testing.TB, seed int) *data.Corpus {
	text := strings.Repeat(fmt.Sprintf("%d: the quick brown fox jumps over the lazy dog. ", seed), 60)
	c, err := data.Build([]source.File{{Format: "text", Name: "t", Data: []byte(text)}}, tokenizer.Bytes(), 0.1)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// job makes a task, and a checkpoint in the middle of the job.
func job(t testing.TB, z size) (*train.Task, *train.Checkpoint) {
	return jobOf(t, z, adamw)
}

var adamw = optimizer.AdamW{Beta1: 0.9, Beta2: 0.95, Eps: 1e-8, WeightDecay: 0.1, MaxGradNorm: 1}

func jobOf(t testing.TB, z size, o optimizer.Optimizer) (*train.Task, *train.Checkpoint) {
	cfg, err := architecture.Parse(architecture.GPT2, map[string]any{
		"n_layer": z.layers, "n_embd": z.width, "n_head": z.heads, "n_positions": z.length, "vocab_size": 256,
	})
	if err != nil {
		t.Fatal(err)
	}
	step, err := model.TrainStep(cfg, o, z.batch, z.length)
	if err != nil {
		t.Fatal(err)
	}
	words := corpus(t, 1)
	spec := &train.Spec{
		Version: 1, Numerics: step.Numerics, Name: "test", Seed: 5, Program: step.Digest(),
		Data:   words.Manifest(shardTokens).Digest(),
		Rounds: 4, Steps: uint32(z.steps), Segment: uint32(z.segment), Units: 2, Batch: uint32(z.batch),
		Length: uint32(z.length),
		Rate:   train.Rate{Kind: train.Cosine, Peak: 1e-2, Warmup: 3, Floor: 0.1}, Beta1: 0.9, Beta2: 0.95,
		Exchange: train.Exchange{Codec: codec.Int8, Rule: aggregate.Mean, Outer: outer.Nesterov, Rate: 0.7, Momentum: 0.9},
	}
	if err := spec.Check(); err != nil {
		t.Fatal(err)
	}
	base, err := outer.Genesis(spec.Exchange, train.Params(step), cfg.Init(3))
	if err != nil {
		t.Fatal(err)
	}
	base.Round = 2
	for i, m := range base.Outer[0] {
		philox.NormalTo(m.F32(), 9, uint64(i))
	}
	return compile(t, &train.Task{Spec: spec, Step: step, Corpus: words}), base
}

func compile(t testing.TB, task *train.Task) *train.Task {
	x, err := task.Spec.Compile(task.Step, 1)
	if err != nil {
		t.Fatal(err)
	}
	task.Exec = x
	if err := task.Divide(); err != nil {
		t.Fatal(err)
	}
	return task
}

// party is the execution of one side of a dispute: an honest one, or one with a change.
type party struct {
	*witness.Witness
	commit work.Commitment

	skip   int // step that only pretends to be done; -1: none
	forged int // parameter whose payload is not that of the work; -1: none
}

func vouch(t testing.TB, task *train.Task, base *train.Checkpoint, unit uint32, change func(p *party)) *party {
	p := &party{Witness: witness.New(task, base, unit, nil, shardTokens), skip: -1, forged: -1}
	if change != nil {
		change(p)
	}
	at := []uint64{0}
	for k, s := uint32(1), uint32(0); k <= task.Spec.Segments(); k++ {
		s += task.Spec.SegmentSteps(k)
		at = append(at, uint64(s))
	}
	segments, err := p.Steps(at)
	if err != nil {
		t.Fatal(err)
	}
	u, err := p.Result(dispute.Update)
	if err != nil {
		t.Fatal(err)
	}
	p.commit = work.Commitment{Segments: segments, Update: u.Root()}
	return p
}

func (p *party) Steps(after []uint64) ([]canon.Digest, error) {
	out, err := p.Witness.Steps(after)
	for i, s := range after {
		if p.skip >= 0 && int(s) > p.skip {
			out[i] = canon.Hash("skipped", []any{out[i], p.skip})
		}
	}
	return out, err
}

func (p *party) Result(k dispute.Kind) (*canon.Tree, error) {
	t, err := p.Witness.Result(k)
	if err != nil || p.forged < 0 {
		return t, err
	}
	list := leaves(t)
	list[p.forged] = canon.Leaf([]byte("forged"))
	return canon.NewTree(list), nil
}

func leaves(t *canon.Tree) []canon.Digest {
	out := make([]canon.Digest, t.Len())
	for i := range out {
		out[i], _ = t.Node(0, i) // every leaf exists
	}
	return out
}

// differ is what a verifier finds when it compares its own execution with a commitment.
func differ(mine, theirs work.Commitment) uint32 {
	for i := range mine.Segments {
		if mine.Segments[i] != theirs.Segments[i] {
			return uint32(i)
		}
	}
	return uint32(len(mine.Segments))
}

// duty is the unit that is disputed, in its round.
func duty(base *train.Checkpoint, c work.Commitment) work.AuditTarget {
	return work.AuditTarget{
		RoundState: work.RoundState{Round: base.Round, Base: terms.Checkpoint{Round: base.Round, Root: base.Root()}},
		Unit:       work.Unit{Index: unit, Status: work.Auditing, Worker: worker, Verifier: verifier, Commit: c},
	}
}

// play disputes a commitment to its end, as the chain would: everything passes through bytes.
func play(t testing.TB, task *train.Task, base *train.Checkpoint, c work.Commitment, segment uint32, asserter,
	challenger dispute.Oracle) dispute.Dispute {
	t.Helper()
	r, err := Open(task.Spec.Digest(), Opening(task.Spec, task.Step, task.Corpus.Manifest(shardTokens)), 0)
	if err != nil {
		t.Fatal(err)
	}
	return playWith(t, task, base, c, segment, asserter, challenger, r)
}

func playWith(t testing.TB, task *train.Task, base *train.Checkpoint, c work.Commitment, segment uint32, asserter,
	challenger dispute.Oracle, r dispute.Referee) dispute.Dispute {
	t.Helper()
	return playDuty(t, task, duty(base, c), segment, asserter, challenger, r)
}

func playDuty(t testing.TB, task *train.Task, d work.AuditTarget, segment uint32, asserter, challenger dispute.Oracle,
	r dispute.Referee) dispute.Dispute {
	t.Helper()
	config, err := newReferee(task.Spec, task.Step).Config("job", d, verifier, 10)
	if err != nil {
		t.Fatal(err)
	}
	g, err := dispute.Open(config, segment, 1)
	for height := int64(2); err == nil && g.Stage != dispute.Over; height++ {
		var m dispute.Move
		from := worker
		if g.Turn == dispute.Asserter {
			m, err = dispute.NextAsserterMove(g, asserter)
		} else {
			from = verifier
			m, err = dispute.NextChallengerMove(g, challenger)
		}
		if err == nil {
			m, err = dispute.Decode(m.Encode())
		}
		if err == nil {
			g, err = g.Apply(height, from, m, r)
		}
	}
	if err != nil {
		t.Fatalf("stage %d: %v", g.Stage, err)
	}
	return g
}

// convict plays a dispute about a unit of a worker that executes another task, and one in which that worker challenges
// the unit of an honest worker. The liar loses both, the first over a tile; the verdict of the first is returned.
func convict(t testing.TB, name string, task, wrong *train.Task, base *train.Checkpoint,
	honest *party) dispute.Verdict {
	t.Helper()
	liar := vouch(t, wrong, base, unit, nil)
	segment := differ(honest.commit, liar.commit)
	if segment == uint32(len(honest.commit.Segments)) {
		t.Fatalf("%s: no state differs", name)
	}
	v := *play(t, task, base, liar.commit, segment, liar, honest).Verdict
	if !v.AsserterLies || v.Leaf != string(dispute.Tile) {
		t.Errorf("%s: verdict %+v", name, v)
	}
	if g := play(t, task, base, honest.commit, segment, honest, liar); g.Verdict.AsserterLies {
		t.Errorf("%s: an honest worker lost: %+v", name, *g.Verdict)
	}
	return v
}

// lie is a dishonest execution, and where a dispute about it must end.
type lie struct {
	name   string
	kind   dispute.Kind
	what   string // part of the ruling
	worker *party
}

// tampered is a job whose program computes something else at the first operator of a kind.
func tampered(t testing.TB, task *train.Task, k program.Kind, change func(op *program.Operator)) *train.Task {
	return tamperedAt(t, task, k, 0, change)
}

// tamperedAt is a task with another n-th operator of a kind.
func tamperedAt(t testing.TB, task *train.Task, k program.Kind, n int, change func(op *program.Operator)) *train.Task {
	p, err := admit.Decode(task.Step.Encode(), program.DefaultLimits)
	if err != nil {
		t.Fatal(err)
	}
	i := slices.IndexFunc(p.Ops, func(op program.Operator) bool {
		if op.Kind == k {
			n--
		}
		return n < 0
	})
	if i < 0 {
		t.Fatalf("the program has too few operators %s", k)
	}
	change(&p.Ops[i])
	other := *task
	other.Step = p
	return compile(t, &other)
}

func respecified(task *train.Task, change func(s *train.Spec)) *train.Task {
	other, spec := *task, *task.Spec
	change(&spec)
	other.Spec = &spec
	if other.Divide() != nil {
		panic("a task whose parts were compiled cannot be divided")
	}
	return &other
}

func lies(t testing.TB, task *train.Task, base *train.Checkpoint) []lie {
	wrongData := *task
	wrongData.Corpus = corpus(t, 2)
	warm := *base
	warm.Params = slices.Clone(base.Params)
	warm.Params[2] = base.Params[2].Clone()
	warm.Params[2].F32()[0] += 1e-6
	pow := func(op *program.Operator) { op.Kind = program.Silu }
	return []lie{
		{"one step skipped", dispute.Binding, "outputs of step 5", vouch(t, task, base, unit, func(p *party) { p.skip = 4 })},
		{"last step skipped", dispute.Binding, "outputs of step 7", vouch(t, task, base, unit,
			func(p *party) { p.skip = 6 })},
		{"other data", dispute.Tile, `input "tokens"`, vouch(t, &wrongData, base, unit, nil)},
		{"work of another unit", dispute.Tile, `(input "tokens") of step 1`, vouch(t, task, base, 0, nil)},
		{"learning rate", dispute.Tile, `(input "lr") of step 1`, vouch(t, respecified(task,
			func(s *train.Spec) { s.Rate.Floor = 0.2 }), base, unit, nil)},
		{"bias correction", dispute.Tile, `(input "c2") of step 1`, vouch(t, respecified(task,
			func(s *train.Spec) { s.Beta2 = 0.96 }), base, unit, nil)},
		{"other start", dispute.Start, "state at the start", vouch(t, task, &warm, unit, nil)},
		{"one operator", dispute.Tile, "(Gelu)", vouch(t, tampered(t, task, program.Gelu, pow), base, unit, nil)},
		{"optimizer", dispute.Tile, "(AdamM)", vouch(t, tampered(t, task, program.AdamM,
			func(op *program.Operator) { op.Ints = []int64{op.Ints[0] + 1} }), base, unit, nil)},
		{"constant", dispute.Tile, "(Constant)", vouch(t, tampered(t, task, program.Constant,
			func(op *program.Operator) { op.Data[0] ^= 1 }), base, unit, nil)},
		{"first parameter of the update", dispute.Update, "the payload of parameter", vouch(t, task, base, unit,
			func(p *party) { p.forged = 0 })},
		{"last parameter of the update", dispute.Update, "the payload of parameter", vouch(t, task, base, unit,
			func(p *party) { p.forged = len(base.Names) - 1 })},
	}
}

func TestWholeDisputes(t *testing.T) {
	task, base := job(t, tiny)
	honest := vouch(t, task, base, unit, nil)
	for _, l := range lies(t, task, base) {
		g := play(t, task, base, l.worker.commit, differ(honest.commit, l.worker.commit), l.worker, honest)
		said := g.Text(g.Log[len(g.Log)-1], question.Names(task.Spec, task.Step))
		if v := g.Verdict; !v.AsserterLies || v.Reason != dispute.Recomputed || v.Leaf != string(l.kind) ||
			!strings.Contains(said, l.what) {
			t.Errorf("%s: verdict %+v: %s", l.name, *v, said)
		}
		t.Logf("%-30s %d+%d moves, %5d bytes of digests, leaf %6d bytes: %s", l.name, g.Moves[0], g.Moves[1], g.HashBytes,
			g.Verdict.LeafBytes, said)

		g = play(t, task, base, honest.commit, differ(honest.commit, l.worker.commit), honest, l.worker)
		if g.Verdict.AsserterLies {
			t.Errorf("%s: an honest worker lost to a verifier that lies: %+v", l.name, *g.Verdict)
		}
	}
}

// The chain computes the windows of a job that are mixed in blocks: a party that reads others loses.
func TestWindowsInBlocks(t *testing.T) {
	plain, base := job(t, tiny)
	task := respecified(plain, func(s *train.Spec) { s.Block = 7 })
	honest, liar := vouch(t, task, base, unit, nil), vouch(t, plain, base, unit, nil)
	g := play(t, task, base, liar.commit, differ(honest.commit, liar.commit), liar, honest)
	if v := g.Verdict; !v.AsserterLies || v.Reason != dispute.Recomputed || v.Leaf != string(dispute.Tile) {
		t.Errorf("verdict %+v", *v)
	}
	g = play(t, task, base, honest.commit, differ(honest.commit, liar.commit), honest, liar)
	if g.Verdict.AsserterLies {
		t.Errorf("an honest worker lost: %+v", *g.Verdict)
	}
}

// With every compression of updates and every state of the outer optimizer, the party that forges an update loses, and
// the honest party wins.
func TestUpdatesOfEveryExchange(t *testing.T) {
	plain, start := job(t, tiny)
	for _, x := range []train.Exchange{
		{Codec: codec.Float32, Rule: aggregate.Mean, Outer: outer.SGD, Rate: 1},
		{Codec: codec.Float16, Rule: aggregate.Mean, Outer: outer.Adam, Rate: 0.01, Momentum: 0.9, Decay: 0.99, Eps: 1e-3},
		{Codec: codec.BFloat16, Rule: aggregate.Mean, Outer: outer.Yogi, Rate: 0.01, Momentum: 0.9, Decay: 0.99, Eps: 1e-3},
		{Codec: codec.E3M0, Rule: aggregate.Mean, Outer: outer.Nesterov, Rate: 0.7, Momentum: 0.9},
		{Codec: codec.TopKName(82, 2), Rule: aggregate.Contributors, Outer: outer.SGD, Rate: 1},
		{Codec: codec.Sign, Rule: aggregate.Mean, Outer: outer.SGD, Rate: 1},
	} {
		task := respecified(plain, func(s *train.Spec) { s.Exchange = x })
		o, err := outer.NewOptimizer(x)
		if err != nil {
			t.Fatal(err)
		}
		base := *start
		base.Outer = train.Zeros(base.Params, o.State())
		honest := vouch(t, task, &base, unit, nil)
		for _, forged := range []int{0, len(base.Names) - 1} {
			liar := vouch(t, task, &base, unit, func(p *party) { p.forged = forged })
			g := play(t, task, &base, liar.commit, differ(honest.commit, liar.commit), liar, honest)
			if !g.Verdict.AsserterLies ||
				g.Verdict.Leaf != string(dispute.Update) {
				t.Errorf("%s, %s, parameter %d: verdict %+v", x.Codec, x.Outer, forged, *g.Verdict)
			}
			if g := play(t, task, &base, honest.commit, differ(honest.commit, liar.commit), honest,
				liar); g.Verdict.AsserterLies {
				t.Errorf("%s, %s, parameter %d: an honest worker lost: %+v", x.Codec, x.Outer, forged, *g.Verdict)
			}
		}
	}
}

// operatorClaim is the question about a part of one operator's output in an honest worker's step.
func operatorClaim(t testing.TB, w *witness.Witness, base *train.Checkpoint, step uint32, op int,
	part uint64) (dispute.Claim, func(int) (canon.Proof, error)) {
	tree, err := w.Trace(step)
	if err != nil {
		t.Fatal(err)
	}
	prior, err := w.Steps([]uint64{uint64(step)})
	if err != nil {
		t.Fatal(err)
	}
	c := dispute.Claim{
		Kind: dispute.Tile, Round: base.Round, Unit: unit, Base: base.Root(), Step: step, Prior: prior[0],
		Trace: tree.Root(), Index: uint32(op), Part: part, Output: leaves(tree)[op],
	}
	if w.Parts(c) > 1 {
		made, err := w.Partial(c, []uint64{part, part + 1})
		if err != nil {
			t.Fatal(err)
		}
		c.Output = made[1]
		if part > 0 {
			c.Before = made[0]
		}
	}
	return c, tree.Proof
}

// lastPart is the claim about the end of an operator.
func lastPart(t testing.TB, w *witness.Witness, base *train.Checkpoint, step uint32, op int) (dispute.Claim,
	func(int) (canon.Proof, error)) {
	return operatorClaim(t, w, base, step, op, w.Parts(dispute.Claim{Kind: dispute.Tile, Index: uint32(op)})-1)
}

// Every kind of operator of a real step is recomputed: an honest output holds, another does not.
func TestEveryKindOfOperator(t *testing.T) {
	for _, z := range []size{tiny, {layers: 1, width: 64, heads: 2, batch: 4, length: 64, steps: 4, segment: 2}} {
		everyKind(t, z, adamw)
	}
	// which reads what the unit began with
	everyKind(t, tiny, optimizer.AdamW{Beta1: 0.9, Beta2: 0.95, Eps: 1e-8, Proximal: 0.1})
	everyKind(t, tiny, optimizer.Descent)
}

// checkPart demands that an honest part holds, another does not, and neither without its payload.
func checkPart(t *testing.T, w *witness.Witness, r *Referee, base *train.Checkpoint, op int, part uint64) {
	t.Helper()
	name := fmt.Sprintf("operator %d (%s), part %d", op, r.step.Ops[op].Kind, part)
	c, prove := operatorClaim(t, w, base, 2, op, part)
	payload, err := w.Leaf(c, prove)
	if err != nil {
		t.Fatal(name, err)
	}
	if ruling, err := r.Judge(c, payload); err != nil || !ruling.Right {
		t.Errorf("%s: an honest output was refused: %v, %v", name, ruling, err)
	}
	lie := c
	lie.Output[0] ^= 1
	if ruling, err := r.Judge(lie, payload); err != nil || ruling.Right {
		t.Errorf("%s: a false output was accepted: %v, %v", name, ruling, err)
	}
	if part > 0 {
		c.Before[0] ^= 1
		if _, err := r.Judge(c, payload); !errors.Is(err, evidence.ErrPayload) {
			t.Errorf("%s: another state before it: %v", name, err)
		}
	}
}

// section is the kind of an operator with the part of the step that it belongs to.
func section(op program.Operator) string {
	return op.Kind.String() + strings.SplitN(op.Name, "/", 2)[0]
}

func everyKind(t *testing.T, z size, o optimizer.Optimizer) {
	task, base := jobOf(t, z, o)
	w := witness.New(task, base, unit, nil, shardTokens)
	r := newReferee(task.Spec, task.Step)
	seen := map[string]bool{}
	for i, op := range task.Step.Ops {
		key := section(op)
		if seen[key] {
			continue
		}
		seen[key] = true
		n := w.Parts(dispute.Claim{Kind: dispute.Tile, Index: uint32(i)})
		for _, part := range slices.Compact([]uint64{0, n / 2, n - 1}) {
			checkPart(t, w, r, base, i, part)
		}
	}
	if len(seen) < 20 {
		t.Fatalf("only %d kinds", len(seen))
	}
}

// A payload that was changed anywhere is refused, whatever it is about.
func TestChangedPayloads(t *testing.T) {
	task, base := job(t, tiny)
	honest := vouch(t, task, base, unit, nil)
	r := newReferee(task.Spec, task.Step)
	for _, l := range lies(t, task, base) {
		if strings.Contains(l.what, "input \"lr") || strings.Contains(l.what, "input \"c2") || strings.Contains(l.what,
			"Constant") {
			continue // recomputed from the specification or the program alone
		}
		var last dispute.Claim
		var payload []byte
		spy := judge{r, func(c dispute.Claim, p []byte) { last, payload = c, p }}
		playWith(t, task, base, l.worker.commit, differ(honest.commit, l.worker.commit), l.worker, honest, spy)
		for i := 0; i < len(payload); i += 1 + len(payload)/97 {
			bad := slices.Clone(payload)
			bad[i] ^= 0x10
			if ruling, err := r.Judge(last, bad); !errors.Is(err, evidence.ErrPayload) {
				t.Fatalf("%s: byte %d of %d changed: %+v, %v", l.name, i, len(payload), ruling, err)
			}
		}
		for _, bad := range [][]byte{nil, {0xa0}, payload[:len(payload)-1], append(slices.Clone(payload), 0)} {
			if _, err := r.Judge(last, bad); !errors.Is(err, evidence.ErrPayload) {
				t.Fatalf("%s: %d bytes: %v", l.name, len(bad), err)
			}
		}
	}
}

// judge is a referee whose rulings are seen.
type judge struct {
	*Referee
	see func(c dispute.Claim, payload []byte)
}

func (j judge) Judge(c dispute.Claim, payload []byte) (dispute.Ruling, error) {
	j.see(c, payload)
	return j.Referee.Judge(c, payload)
}

func TestOpenRefuses(t *testing.T) {
	task, _ := job(t, tiny)
	good := Opening(task.Spec, task.Step, task.Corpus.Manifest(shardTokens))
	other := respecified(task, func(s *train.Spec) { s.Seed++ })
	wrongProgram := tampered(t, task, program.Gelu, func(op *program.Operator) { op.Kind = program.Silu })
	for name, b := range map[string][]byte{
		"empty": nil, "truncated": good[:len(good)-1], "trailing": append(slices.Clone(good), 0),
		"another job":     Opening(other.Spec, task.Step, task.Corpus.Manifest(shardTokens)),
		"another program": Opening(task.Spec, wrongProgram.Step, task.Corpus.Manifest(shardTokens)), "too long": make([]byte,
			MaxOpening+1),
	} {
		if _, err := Open(task.Spec.Digest(), b, 0); !errors.Is(err, ErrOpening) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestCheckNamesWhatIsTooLarge(t *testing.T) {
	task, _ := job(t, tiny)
	m := task.Corpus.Manifest(shardTokens)
	if err := Check(task.Spec, task.Step, m); err != nil {
		t.Error(err)
	}
	m.TrainTokens, m.ShardTokens, m.Shards = 4<<30, 1<<20, make([]canon.Digest, 4<<10)
	if err := Check(task.Spec, task.Step, m); err != nil {
		t.Errorf("a corpus of 8 GiB: %v", err)
	}
	m.Shards = make([]canon.Digest, 1<<18)
	if err := Check(task.Spec, task.Step, m); !errors.Is(err, evidence.ErrTooLarge) ||
		!strings.Contains(err.Error(), "tokens") {
		t.Errorf("a large manifest: %v", err)
	}
	b := program.NewBuilder()
	x := b.Input("x", tensor.Make(tensor.Float32, 1<<20))
	z, err := b.Reduce(program.FirstMax, x, 0)
	if err != nil {
		t.Fatal(err)
	}
	b.Output("z", z)
	p, err := b.Finish()
	if err != nil {
		t.Fatal(err)
	}
	if err := Check(task.Spec, p, task.Corpus.Manifest(shardTokens)); !errors.Is(err, evidence.ErrTooLarge) ||
		!strings.Contains(err.Error(), `FirstMax of "x" `) {
		t.Errorf("a large operator: %v", err)
	}
}

func TestZeroRoot(t *testing.T) {
	for _, n := range []int{1, 7, 1023, 1024, 1025, 20000} {
		s := tensor.Make(tensor.Float32, n)
		if zeroRoot(s) != tensor.New(s).Root() {
			t.Errorf("%d zeros", n)
		}
	}
}
