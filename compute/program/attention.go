package program

import (
	"slices"
	"strings"

	"github.com/starling-network/starling/compute/kernel"
	"github.com/starling-network/starling/compute/kernel/attention"
	"github.com/starling-network/starling/compute/tensor"
	"github.com/starling-network/starling/compute/view"
)

// attentionOf returns the shapes of an attention between q [batch, heads, queries, width] and k [batch, groups, keys,
// width].
func attentionOf(op *Operator, q, k tensor.Shape, path kernel.Path) attention.Head {
	return attention.Head{
		Path: path, Queries: q.Dims[2], Keys: k.Dims[2], Width: q.Dims[3], Query: int(op.Ints[0]), Key: int(op.Ints[1]),
	}
}

// ruleAttention checks the kinds of attention. Their operands are among q, k, v, do, lse, delta in this order; like
// says which of them each has the shape of, and result which of them the output has.
func ruleAttention(result byte, like string) rule {
	return func(op *Operator, in []tensor.Shape) (tensor.Shape, error) {
		q, k := in[0], in[1]
		if err := wantInts(op, 2); err != nil {
			return q, err
		}
		if query, key := op.Ints[0], op.Ints[1]; min(query, key) < 0 || max(query, key) > maxDim ||
			query < key && result != 'k' {
			return q, invalid("the first query is at %d, the first key at %d", query, key)
		}
		if !float(q.DType) || !float(k.DType) || q.Rank() != 4 || k.Rank() != 4 || q.Dims[0] != k.Dims[0] ||
			q.Dims[3] != k.Dims[3] || q.Dims[1]%k.Dims[1] != 0 {
			return q, invalid("queries %s and keys %s", q, k)
		}
		shapes := map[byte]tensor.Shape{'q': q, 'k': k, 'r': tensor.Make(tensor.Float32, q.Dims[:3]...)}
		for i, s := range in {
			if !s.Equal(shapes[like[i]]) {
				return q, invalid("operand %d is %s, want %s", i, s, shapes[like[i]])
			}
		}
		return shapes[result], nil
	}
}

// attentionPairs is the number of pairs of a query and a key that it sees, over all heads.
func attentionPairs(op *Operator, q, k tensor.Shape) uint64 {
	queries, keys, ahead := int64(q.Dims[2]), int64(k.Dims[2]), op.Ints[0]-op.Ints[1]
	// Query i sees min(keys, ahead+i+1) keys if that is positive.
	from := min(max(0, -ahead), queries)
	all := min(max(from, keys-ahead-1), queries) // the first query that sees all keys
	n := all - from
	pairs := uint64(n*(from+ahead) + n*(n+1)/2 + (queries-all)*keys)
	return saturatingMul(pairs, uint64(q.Dims[0]*q.Dims[1]))
}

// attentionFlops counts every kind on its own, and the products alone: of queries and keys, of what they weigh.
func (p *Program) attentionFlops(op *Operator) uint64 {
	q, k := p.Ops[op.In[0]].Out, p.Ops[op.In[1]].Out
	products := map[Kind]uint64{CausalAttention: 2, CausalAttentionLSE: 1, CausalAttentionGradQ: 3,
		CausalAttentionGradK: 3, CausalAttentionGradV: 2}
	return saturatingMul(attentionPairs(op, q, k), products[op.Kind]*2*uint64(q.Dims[3]))
}

// partners is how many operators after one of attention are looked at for others that share its work.
const partners = 3

// A headed tensor [batch, heads, rows, width] is read, or written, in rows of neighbouring elements.
type headed struct {
	loc
	wanted bool
}

func (h headed) rows(x *Exec, batch, head int) attention.Rows {
	if !h.wanted {
		return attention.Rows{}
	}
	return attention.Rows{Data: tensor.As[float32](x.memory[h.store])[h.Offset+batch*h.Strides[0]+head*h.Strides[1]:],
		Stride: h.Strides[2]}
}

// headedOf returns a view of a value with rows of neighbours, after adding a copy if there is none.
func (pl *plan) headedOf(v int32) headed {
	l := pl.at[v]
	if l.Strides[3] != 1 && l.Dims[3] > 1 || !l.Ascending() {
		l = pl.dense(int(v))
	}
	return headed{l, true}
}

// attentionStep is the attention of all heads, and the results that are wanted of it.
type attentionStep struct {
	attention.Head
	q, k, v, do         headed
	o, dq, dk, dv       headed
	lse, delta          span // operands of gradients
	rows                int  // store of the result lse
	wantsRows, backward bool
	made                int
}

// lowerAttention adds a step for operator i and those of the next few that have the same operands: what they compute in
// common is computed once.
func (pl *plan) lowerAttention(i int) loc {
	if pl.at[i].Dims != nil {
		return pl.at[i] // made with an earlier operator
	}
	op := &pl.p.Ops[i]
	members := pl.attentionMembers(i)
	q, k := pl.p.Ops[op.In[0]].Out, pl.p.Ops[op.In[1]].Out
	st := &attentionStep{Head: attentionOf(op, q, k, pl.path), backward: op.Kind > CausalAttentionLSE}
	var reads []int
	read := func(h *headed, v int32) {
		if !h.wanted {
			*h = pl.headedOf(v)
			reads = append(reads, h.store)
		}
	}
	row := func(s *span, v int32) {
		*s = pl.spanOf(v)
		reads = append(reads, s.store)
	}
	for _, j := range members {
		for k, role := range attentionRoles[pl.p.Ops[j].Kind] {
			switch v := pl.p.Ops[j].In[k]; role {
			case 'q':
				read(&st.q, v)
			case 'k':
				read(&st.k, v)
			case 'v':
				read(&st.v, v)
			case 'o':
				read(&st.do, v)
			case 'l':
				row(&st.lse, v)
			case 'd':
				row(&st.delta, v)
			}
		}
	}
	// All operands are in place: copies have steps of their own, before this one.
	st.made = len(pl.steps)
	var writes []int
	for _, j := range members {
		writes = append(writes, pl.attentionResult(st, j))
	}
	pl.scratch = max(pl.scratch, 4*st.scratch())
	pl.steps = append(pl.steps, step{run: st.run, reads: reads, writes: writes})
	return pl.at[i]
}

// attentionMembers lists operator i and those after it that one step computes with it: results of other kinds, forward
// or gradients, whose operands are those of i and are there when i is.
func (pl *plan) attentionMembers(i int) []int {
	members := []int{i}
	for j := i + 1; j <= i+partners && j < len(pl.p.Ops); j++ {
		other := &pl.p.Ops[j]
		apart := func(m int) bool { return !sharesAttention(&pl.p.Ops[m], other) }
		late := func(v int32) bool { return int(v) >= i }
		if pl.live[j] && !slices.ContainsFunc(members, apart) && !slices.ContainsFunc(other.In, late) {
			members = append(members, j)
		}
	}
	return members
}

// attentionRoles says what the operands of the kinds of attention are, a letter each: q, k, v, do, lse and delta.
var attentionRoles = map[Kind]string{
	CausalAttention: "qkv", CausalAttentionLSE: "qk",
	CausalAttentionGradQ: "qkvold", CausalAttentionGradK: "qkvold", CausalAttentionGradV: "qkol",
}

// sharesAttention reports whether two operators are of different kinds of attention, both forward or both gradients,
// and have the same positions and the same tensors as the operands that both have.
func sharesAttention(a, b *Operator) bool {
	rolesA, rolesB := attentionRoles[a.Kind], attentionRoles[b.Kind]
	if rolesB == "" || a.Kind == b.Kind || (a.Kind <= CausalAttentionLSE) != (b.Kind <= CausalAttentionLSE) ||
		!slices.Equal(a.Ints, b.Ints) {
		return false
	}
	for i, role := range rolesA {
		if k := strings.IndexRune(rolesB, role); k >= 0 && a.In[i] != b.In[k] {
			return false
		}
	}
	return true
}

// attentionResult makes the store of a result. Heads lie side by side in memory: that is how layers before and after
// use them.
func (pl *plan) attentionResult(st *attentionStep, j int) int {
	op := &pl.p.Ops[j]
	s := pl.newStore(store{bytes: op.Out.Bytes(), made: st.made})
	if op.Kind == CausalAttentionLSE {
		st.rows, st.wantsRows = s, true
		pl.at[j] = dense(s, op.Out.Dims)
		return s
	}
	swap := []int64{0, 2, 1, 3}
	pl.at[j] = loc{s, view.Dense(view.Pick(op.Out.Dims, swap)).Axes(swap)}
	to := map[Kind]*headed{CausalAttention: &st.o, CausalAttentionGradQ: &st.dq, CausalAttentionGradK: &st.dk,
		CausalAttentionGradV: &st.dv}[op.Kind]
	*to = headed{pl.at[j], true}
	return s
}

func (st *attentionStep) scratch() int {
	if st.backward {
		return st.BackwardScratch()
	}
	return st.ForwardScratch()
}

func (st *attentionStep) run(x *Exec) error {
	batch, heads, groups := st.q.Dims[0], st.q.Dims[1], st.k.Dims[1]
	tasks, each := batch*heads, 1
	if st.backward { // heads that share keys follow each other
		tasks, each = batch*groups, heads/groups
	}
	work := each * st.Queries * st.Keys * st.Width
	x.share(tasks, work, func(w *worker, lo, hi int) {
		for t := lo * each; t < hi*each; t++ {
			st.head(x, t/heads, t%heads, heads/groups, tensor.As[float32](w.scratch))
		}
	})
	return nil
}

// head computes one head of queries, of which group share one of keys.
func (st *attentionStep) head(x *Exec, batch, head, group int, scratch []float32) {
	at := (batch*st.q.Dims[1] + head) * st.Queries // of the rows of lse and delta
	of := func(s span) []float32 {
		if s.hi == 0 {
			return nil
		}
		return tensor.As[float32](x.memory[s.store][s.lo:s.hi])[at : at+st.Queries]
	}
	q, k, v := st.q.rows(x, batch, head), st.k.rows(x, batch, head/group), st.v.rows(x, batch, head/group)
	if st.backward {
		st.Backward(st.dq.rows(x, batch, head), st.dk.rows(x, batch, head/group), st.dv.rows(x, batch, head/group),
			q, k, v, st.do.rows(x, batch, head), of(st.lse), of(st.delta), scratch, head%group > 0)
		return
	}
	var lse []float32
	if st.wantsRows {
		lse = tensor.As[float32](x.memory[st.rows])[at : at+st.Queries]
	}
	st.Forward(st.o.rows(x, batch, head), lse, q, k, v, scratch)
}
