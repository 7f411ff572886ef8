// Package oracle computes language models with plain loops in float64, written from the papers and the layouts of
// Hugging Face and sharing nothing with the graphs: tests hold programs against it. It is no part of the program.
package oracle

import (
	"fmt"
	"math"

	"github.com/starling-network/starling/compute/model/architecture"
	"github.com/starling-network/starling/compute/tensor"
)

// Model is a GPT-2 or a Llama with its weights.
type Model struct {
	Config  architecture.Config
	Weights map[string]*tensor.Tensor
	Both    bool // a token sees those after it, too
}

// Vector is a list of numbers.
type Vector []float64

// Logits are those of each token of a sequence.
func (r Model) Logits(tokens []int32) []Vector {
	x := r.Hidden(tokens)
	head := r.Config.EmbeddingName()
	if !r.Config.Tied {
		head = r.Config.OutputName()
	}
	for t := range x {
		x[t] = r.dense(x[t], head, r.Config.VocabSize(), true, "")
	}
	return x
}

// Hidden is the input of the output layer for each token of a sequence.
func (r Model) Hidden(tokens []int32) []Vector {
	if r.Config.Architecture() == architecture.GPT2 {
		return r.gpt2(tokens)
	}
	return r.llama(tokens)
}

func (r Model) data(name string) []float32 {
	t, ok := r.Weights[name]
	if !ok {
		panic("no tensor " + name)
	}
	return t.F32()
}

func (r Model) row(name string, i, n int) Vector {
	out := make(Vector, n)
	for j := range out {
		out[j] = float64(r.data(name)[i*n+j])
	}
	return out
}

// dense is x times w, which is [in, out], or [out, in] if transposed, plus the bias if there is one.
func (r Model) dense(x Vector, name string, out int, transposed bool, bias string) Vector {
	y := make(Vector, out)
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

func (r Model) norm(x Vector, gain, bias string) Vector {
	mean, square := 0.0, 0.0
	if bias != "" {
		for _, v := range x {
			mean += v / float64(len(x))
		}
	}
	for _, v := range x {
		square += (v - mean) * (v - mean) / float64(len(x))
	}
	y := make(Vector, len(x))
	for i, v := range x {
		y[i] = (v - mean) / math.Sqrt(square+r.Config.NormEps) * float64(r.data(gain)[i])
		if bias != "" {
			y[i] += float64(r.data(bias)[i])
		}
	}
	return y
}

func plus(x, y Vector) Vector {
	z := make(Vector, len(x))
	for i := range z {
		z[i] = x[i] + y[i]
	}
	return z
}

// attend lets position t of q look at positions of k and v, up to t unless it sees both sides; query head h uses head
// h*kvHeads/heads.
func (r Model) attend(q, k, v []Vector, t int) Vector {
	size, seen := r.Config.HeadDim, t+1
	if r.Both {
		seen = len(k)
	}
	out := make(Vector, r.Config.Heads*size)
	for h := range r.Config.Heads {
		at := h * r.Config.KVHeads / r.Config.Heads * size
		weights, total := make(Vector, seen), 0.0
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
func (r Model) turn(x Vector, t int) Vector {
	size := r.Config.HeadDim
	y := make(Vector, len(x))
	for at := 0; at < len(x); at += size {
		for i := range size / 2 {
			angle := float64(t) * math.Pow(r.Config.Form.Theta, -2*float64(i)/float64(size))
			a, b := x[at+i], x[at+i+size/2]
			y[at+i] = a*math.Cos(angle) - b*math.Sin(angle)
			y[at+i+size/2] = b*math.Cos(angle) + a*math.Sin(angle)
		}
	}
	return y
}

func (r Model) gpt2(tokens []int32) []Vector {
	d := r.Config.Width
	x := make([]Vector, len(tokens))
	for t, id := range tokens {
		x[t] = plus(r.row("transformer.wte.weight", int(id), d), r.row("transformer.wpe.weight", t, d))
	}
	for l := range r.Config.Layers {
		h := fmt.Sprintf("transformer.h.%d.", l)
		var q, k, v []Vector
		for t := range x {
			all := r.dense(r.norm(x[t], h+"ln_1.weight", h+"ln_1.bias"), h+"attn.c_attn.weight", 3*d, false,
				h+"attn.c_attn.bias")
			q, k, v = append(q, all[:d]), append(k, all[d:2*d]), append(v, all[2*d:])
		}
		for t := range x {
			x[t] = plus(x[t], r.dense(r.attend(q, k, v, t), h+"attn.c_proj.weight", d, false, h+"attn.c_proj.bias"))
			y := r.dense(r.norm(x[t], h+"ln_2.weight", h+"ln_2.bias"), h+"mlp.c_fc.weight", r.Config.Inner, false,
				h+"mlp.c_fc.bias")
			for i, a := range y {
				y[i] = 0.5 * a * (1 + math.Tanh(math.Sqrt(2/math.Pi)*(a+0.044715*a*a*a)))
			}
			x[t] = plus(x[t], r.dense(y, h+"mlp.c_proj.weight", d, false, h+"mlp.c_proj.bias"))
		}
	}
	for t := range x {
		x[t] = r.norm(x[t], "transformer.ln_f.weight", "transformer.ln_f.bias")
	}
	return x
}

func (r Model) llama(tokens []int32) []Vector {
	d, size := r.Config.Width, r.Config.HeadDim
	x := make([]Vector, len(tokens))
	for t, id := range tokens {
		x[t] = r.row("model.embed_tokens.weight", int(id), d)
	}
	for l := range r.Config.Layers {
		h := fmt.Sprintf("model.layers.%d.", l)
		var q, k, v []Vector
		for t := range x {
			y := r.norm(x[t], h+"input_layernorm.weight", "")
			q = append(q, r.turn(r.dense(y, h+"self_attn.q_proj.weight", r.Config.Heads*size, true, ""), t))
			k = append(k, r.turn(r.dense(y, h+"self_attn.k_proj.weight", r.Config.KVHeads*size, true, ""), t))
			v = append(v, r.dense(y, h+"self_attn.v_proj.weight", r.Config.KVHeads*size, true, ""))
		}
		for t := range x {
			x[t] = plus(x[t], r.dense(r.attend(q, k, v, t), h+"self_attn.o_proj.weight", d, true, ""))
			y := r.norm(x[t], h+"post_attention_layernorm.weight", "")
			gate := r.dense(y, h+"mlp.gate_proj.weight", r.Config.Inner, true, "")
			up := r.dense(y, h+"mlp.up_proj.weight", r.Config.Inner, true, "")
			for i, a := range gate {
				up[i] *= a / (1 + math.Exp(-a))
			}
			x[t] = plus(x[t], r.dense(up, h+"mlp.down_proj.weight", d, true, ""))
		}
	}
	for t := range x {
		x[t] = r.norm(x[t], "model.norm.weight", "")
	}
	return x
}
