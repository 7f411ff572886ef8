package model

import (
	"fmt"
	"math"

	"github.com/starling-network/starling/compute/model/architecture"
	"github.com/starling-network/starling/compute/tensor"
)

// reference computes the logits of one sequence with plain loops in float64, written from the papers and the layouts of
// Hugging Face and sharing nothing with the graphs: what the programs are held against.
type reference struct {
	c architecture.Config
	w map[string]*tensor.Tensor
}

type vector []float64

func (r reference) logits(tokens []int32) []vector {
	if r.c.Architecture() == architecture.GPT2 {
		return r.gpt2(tokens)
	}
	return r.llama(tokens)
}

func (r reference) data(name string) []float32 {
	t, ok := r.w[name]
	if !ok {
		panic("no tensor " + name)
	}
	return t.F32()
}

func (r reference) row(name string, i, n int) vector {
	out := make(vector, n)
	for j := range out {
		out[j] = float64(r.data(name)[i*n+j])
	}
	return out
}

// dense is x times w, which is [in, out], or [out, in] if transposed, plus the bias if there is one.
func (r reference) dense(x vector, name string, out int, transposed bool, bias string) vector {
	y := make(vector, out)
	w := r.data(name)
	for j := range y {
		for i := range x {
			if transposed {
				y[j] += x[i] * float64(w[j*len(x)+i])
			} else {
				y[j] += x[i] * float64(w[i*out+j])
			}
		}
		if bias != "" {
			y[j] += float64(r.data(bias)[j])
		}
	}
	return y
}

func (r reference) norm(x vector, gain, bias string) vector {
	mean, square := 0.0, 0.0
	if bias != "" {
		for _, v := range x {
			mean += v / float64(len(x))
		}
	}
	for _, v := range x {
		square += (v - mean) * (v - mean) / float64(len(x))
	}
	y := make(vector, len(x))
	for i, v := range x {
		y[i] = (v - mean) / math.Sqrt(square+r.c.NormEps) * float64(r.data(gain)[i])
		if bias != "" {
			y[i] += float64(r.data(bias)[i])
		}
	}
	return y
}

func plus(x, y vector) vector {
	z := make(vector, len(x))
	for i := range z {
		z[i] = x[i] + y[i]
	}
	return z
}

// attend lets position t of q look at positions up to t of k and v; query head h uses head h*kvHeads/heads.
func (r reference) attend(q, k, v []vector, t int) vector {
	size := r.c.HeadDim
	out := make(vector, r.c.Heads*size)
	for h := range r.c.Heads {
		at := h * r.c.KVHeads / r.c.Heads * size
		weights, total := make(vector, t+1), 0.0
		for s := range weights {
			dot := 0.0
			for i := range size {
				dot += q[t][h*size+i] * k[s][at+i]
			}
			weights[s] = math.Exp(dot / math.Sqrt(float64(size)))
			total += weights[s]
		}
		for s, weight := range weights {
			for i := range size {
				out[h*size+i] += weight / total * v[s][at+i]
			}
		}
	}
	return out
}

// turn applies the rotary position t to every head of x.
func (r reference) turn(x vector, t int) vector {
	size := r.c.HeadDim
	y := make(vector, len(x))
	for at := 0; at < len(x); at += size {
		for i := range size / 2 {
			angle := float64(t) * math.Pow(r.c.Form.Theta, -2*float64(i)/float64(size))
			a, b := x[at+i], x[at+i+size/2]
			y[at+i] = a*math.Cos(angle) - b*math.Sin(angle)
			y[at+i+size/2] = b*math.Cos(angle) + a*math.Sin(angle)
		}
	}
	return y
}

func (r reference) gpt2(tokens []int32) []vector {
	d := r.c.Width
	x := make([]vector, len(tokens))
	for t, id := range tokens {
		x[t] = plus(r.row("transformer.wte.weight", int(id), d), r.row("transformer.wpe.weight", t, d))
	}
	for l := range r.c.Layers {
		h := fmt.Sprintf("transformer.h.%d.", l)
		var q, k, v []vector
		for t := range x {
			all := r.dense(r.norm(x[t], h+"ln_1.weight", h+"ln_1.bias"), h+"attn.c_attn.weight", 3*d, false,
				h+"attn.c_attn.bias")
			q, k, v = append(q, all[:d]), append(k, all[d:2*d]), append(v, all[2*d:])
		}
		for t := range x {
			x[t] = plus(x[t], r.dense(r.attend(q, k, v, t), h+"attn.c_proj.weight", d, false, h+"attn.c_proj.bias"))
			y := r.dense(r.norm(x[t], h+"ln_2.weight", h+"ln_2.bias"), h+"mlp.c_fc.weight", r.c.Inner, false, h+"mlp.c_fc.bias")
			for i, a := range y {
				y[i] = 0.5 * a * (1 + math.Tanh(math.Sqrt(2/math.Pi)*(a+0.044715*a*a*a)))
			}
			x[t] = plus(x[t], r.dense(y, h+"mlp.c_proj.weight", d, false, h+"mlp.c_proj.bias"))
		}
	}
	for t := range x {
		y := r.norm(x[t], "transformer.ln_f.weight", "transformer.ln_f.bias")
		x[t] = r.dense(y, "transformer.wte.weight", r.c.VocabSize(), true, "")
	}
	return x
}

func (r reference) llama(tokens []int32) []vector {
	d, size := r.c.Width, r.c.HeadDim
	head := "lm_head.weight"
	if r.c.Tied {
		head = "model.embed_tokens.weight"
	}
	x := make([]vector, len(tokens))
	for t, id := range tokens {
		x[t] = r.row("model.embed_tokens.weight", int(id), d)
	}
	for l := range r.c.Layers {
		h := fmt.Sprintf("model.layers.%d.", l)
		var q, k, v []vector
		for t := range x {
			y := r.norm(x[t], h+"input_layernorm.weight", "")
			q = append(q, r.turn(r.dense(y, h+"self_attn.q_proj.weight", r.c.Heads*size, true, ""), t))
			k = append(k, r.turn(r.dense(y, h+"self_attn.k_proj.weight", r.c.KVHeads*size, true, ""), t))
			v = append(v, r.dense(y, h+"self_attn.v_proj.weight", r.c.KVHeads*size, true, ""))
		}
		for t := range x {
			x[t] = plus(x[t], r.dense(r.attend(q, k, v, t), h+"self_attn.o_proj.weight", d, true, ""))
			y := r.norm(x[t], h+"post_attention_layernorm.weight", "")
			gate := r.dense(y, h+"mlp.gate_proj.weight", r.c.Inner, true, "")
			up := r.dense(y, h+"mlp.up_proj.weight", r.c.Inner, true, "")
			for i, a := range gate {
				up[i] *= a / (1 + math.Exp(-a))
			}
			x[t] = plus(x[t], r.dense(up, h+"mlp.down_proj.weight", d, true, ""))
		}
	}
	for t := range x {
		x[t] = r.dense(r.norm(x[t], "model.norm.weight", ""), head, r.c.VocabSize(), true, "")
	}
	return x
}

// loss is the mean cross-entropy of the sequences of tokens [batch, length+1].
func (r reference) loss(tokens []int32, batch int) float64 {
	length := len(tokens)/batch - 1
	sum := 0.0
	for b := range batch {
		row := tokens[b*(length+1):][:length+1]
		for t, logits := range r.logits(row[:length]) {
			sum += crossEntropyOf(logits, row[t+1])
		}
	}
	return sum / float64(batch*length)
}

func crossEntropyOf(logits vector, target int32) float64 {
	total := 0.0
	for _, x := range logits {
		total += math.Exp(x)
	}
	return math.Log(total) - logits[target]
}
