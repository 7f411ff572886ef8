package cpu

import (
	"github.com/starling-network/starling/compute/kernel/attention"
	"github.com/starling-network/starling/compute/kernel/elementary"
	"github.com/starling-network/starling/compute/lower"
	"github.com/starling-network/starling/compute/tensor"
)

// attentionStep is the attention of all heads.
type attentionStep struct {
	*lower.Attention
	attention.Head
}

func bindAttention(a *lower.Attention, m elementary.Math) boundStep {
	st := &attentionStep{a, attention.Head{Math: m, Queries: a.Q.Dims[2], Keys: a.K.Dims[2], Width: a.Q.Dims[3],
		Query: a.Query, Key: a.Key}}
	scratch := st.ForwardScratch
	if a.Gradients {
		scratch = st.BackwardScratch
	}
	return boundStep{run: st.run, scratch: 4 * scratch()}
}

func (st *attentionStep) run(x *Exec) error {
	batch, heads, groups := st.Q.Dims[0], st.Q.Dims[1], st.K.Dims[1]
	tasks, each := batch*heads, 1
	if st.Gradients { // heads that share keys follow each other
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
	rows := func(l *lower.Location, head int) attention.Rows {
		if l == nil {
			return attention.Rows{}
		}
		return attention.Rows{Data: tensor.As[float32](x.memory[l.Store])[l.Offset+batch*l.Strides[0]+head*l.Strides[1]:],
			Stride: l.Strides[2]}
	}
	at := (batch*st.Q.Dims[1] + head) * st.Queries // of the rows of lse and delta
	list := func(l *lower.Location) []float32 {
		if l == nil {
			return nil
		}
		lo, hi := l.Range()
		return tensor.As[float32](x.memory[l.Store][lo:hi])[at : at+st.Queries]
	}
	keys := head / group
	q, k, v := rows(st.Q, head), rows(st.K, keys), rows(st.V, keys)
	if st.Gradients {
		st.Backward(rows(st.DQ, head), rows(st.DK, keys), rows(st.DV, keys), q, k, v, rows(st.DO, head),
			list(st.LSE), list(st.Delta), scratch, head%group > 0)
		return
	}
	st.Forward(rows(st.O, head), list(st.Rows), q, k, v, scratch)
}
