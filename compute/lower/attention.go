package lower

import (
	"slices"
	"strings"

	"github.com/starling-network/starling/compute/program"
	"github.com/starling-network/starling/compute/view"
)

// Attention is a step that computes what several operators of attention give: of the forward pass, or of its gradients.
// Operands and results are tensors [batch, heads, rows, width] whose rows are neighbouring elements, and [batch, heads,
// rows], contiguous. Those that nothing asks for are nil.
type Attention struct {
	Query, Key int // positions of the first query and of the first key
	Gradients  bool

	Q, K, V, DO   *Location
	LSE, Delta    *Location // operands of gradients
	O, DQ, DK, DV *Location // results
	Rows          *Location // the result lse
}

// partners is how many operators after one of attention are looked at for others that share its work.
const partners = 3

// lowerAttention adds a step for operator i and those of the next few that have the same operands: what they compute in
// common is computed once.
func (l *lowering) lowerAttention(i int) Location {
	if l.at[i].Dims != nil {
		return l.at[i] // made with an earlier operator
	}
	op := &l.Program.Ops[i]
	members := l.attentionMembers(i)
	a := &Attention{Query: int(op.Ints[0]), Key: int(op.Ints[1]), Gradients: op.Kind > program.CausalAttentionLSE}
	st := Step{Attention: a, Kind: op.Kind, Op: i}
	for _, j := range members {
		member := &l.Program.Ops[j]
		for k, role := range member.Kind.AttentionRoles() {
			to, at := a.operand(role), Location{}
			switch {
			case role == 'l' || role == 'd':
				at = l.dense(member.In[k])
			case *to != nil:
				continue
			default:
				at = l.headed(member.In[k])
			}
			*to = &at
			st.reads = append(st.reads, at.Store)
		}
	}
	// All operands are in place: copies have steps of their own, before this one.
	for _, j := range members {
		at := l.attentionResult(a, j)
		l.at[j] = at
		st.writes = append(st.writes, at.Store)
	}
	l.Steps = append(l.Steps, st)
	return l.at[i]
}

// operand is where the operand of a role is kept.
func (a *Attention) operand(role rune) **Location {
	switch role {
	case 'q':
		return &a.Q
	case 'k':
		return &a.K
	case 'v':
		return &a.V
	case 'o':
		return &a.DO
	case 'l':
		return &a.LSE
	}
	return &a.Delta
}

// headed returns a location of a value with rows of neighbours, after adding a copy if there is none.
func (l *lowering) headed(v int32) Location {
	at := l.at[v]
	if at.Strides[3] != 1 && at.Dims[3] > 1 || !at.Ascending() {
		return l.dense(v)
	}
	return at
}

// attentionMembers lists operator i and those after it that one step computes with it: results of other kinds, forward
// or gradients, whose operands are those of i and are there when i is.
func (l *lowering) attentionMembers(i int) []int {
	ops, members := l.Program.Ops, []int{i}
	for j := i + 1; j <= i+partners && j < len(ops); j++ {
		apart := func(m int) bool { return !sharesAttention(&ops[m], &ops[j]) }
		late := func(v int32) bool { return int(v) >= i }
		if l.live[j] && !slices.ContainsFunc(members, apart) && !slices.ContainsFunc(ops[j].In, late) {
			members = append(members, j)
		}
	}
	return members
}

// sharesAttention reports whether two operators are of different kinds of attention, both forward or both gradients,
// and have the same positions and the same tensors as the operands that both have.
func sharesAttention(a, b *program.Operator) bool {
	forward := func(k program.Kind) bool { return k <= program.CausalAttentionLSE }
	rolesA, rolesB := a.Kind.AttentionRoles(), b.Kind.AttentionRoles()
	if rolesB == "" || a.Kind == b.Kind || forward(a.Kind) != forward(b.Kind) || !slices.Equal(a.Ints, b.Ints) {
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
func (l *lowering) attentionResult(a *Attention, j int) Location {
	op := &l.Program.Ops[j]
	at := dense(l.newStore(Store{Bytes: op.Out.Bytes(), Made: len(l.Steps)}), op.Out)
	if op.Kind == program.CausalAttentionLSE {
		a.Rows = &at
		return at
	}
	swap := []int64{0, 2, 1, 3}
	at.View = view.Dense(view.Pick(op.Out.Dims, swap)).Axes(swap)
	switch op.Kind {
	case program.CausalAttention:
		a.O = &at
	case program.CausalAttentionGradQ:
		a.DQ = &at
	case program.CausalAttentionGradK:
		a.DK = &at
	case program.CausalAttentionGradV:
		a.DV = &at
	}
	return at
}
