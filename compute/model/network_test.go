package model

import (
	"fmt"
	"math"
	"testing"
)

// networkReference computes scores with plain loops in float64, sharing nothing with the graphs.
type networkReference struct{ reference }

func (r networkReference) layer(x vector, name string, out int) vector {
	return r.dense(x, name+".weight", out, true, name+".bias")
}

func positive(x vector) vector {
	for i := range x {
		x[i] = max(x[i], 0)
	}
	return x
}

func (r networkReference) mlp(m MLP, x vector) vector {
	for i, width := range m.Hidden {
		x = positive(r.layer(x, fmt.Sprintf("fc%d", i+1), width))
	}
	return r.layer(x, fmt.Sprintf("fc%d", len(m.Hidden)+1), m.Classes)
}

func (r networkReference) cnn(m CNN, x vector) vector {
	rows, columns, in := m.Rows, m.Columns, m.Colours
	for l, out := range m.Channels {
		name := fmt.Sprintf("conv%d", l+1)
		w, bias := r.data(name+".weight"), r.data(name+".bias")
		y := make(vector, rows*columns*out)
		for i := range y {
			row, column, o := i/out/columns, i/out%columns, i%out
			y[i] = float64(bias[o])
			for a := range m.Kernel {
				for b := range m.Kernel {
					p, q := row+a-m.Kernel/2, column+b-m.Kernel/2
					if p < 0 || q < 0 || p >= rows || q >= columns {
						continue
					}
					for c := range in {
						y[i] += x[(p*columns+q)*in+c] * float64(w[((o*in+c)*m.Kernel+a)*m.Kernel+b])
					}
				}
			}
		}
		x = pooled(m, positive(y), rows, columns, out)
		rows, columns, in = rows/2, columns/2, out
	}
	return r.mlp(m.top(), x)
}

func pooled(m CNN, x vector, rows, columns, channels int) vector {
	y := make(vector, rows/2*(columns/2)*channels)
	for i := range y {
		row, column, c := i/channels/(columns/2)*2, i/channels%(columns/2)*2, i%channels
		for a := range 2 {
			for b := range 2 {
				v := x[((row+a)*columns+column+b)*channels+c]
				if m.MeanPool {
					y[i] += v / 4
				} else {
					y[i] = max(y[i], v) // never negative
				}
			}
		}
	}
	return y
}

// graphNet works on the adjacency matrix of the pairs instead of a list of edges.
func (r networkReference) graphNet(m GraphNet, pairs [][2]int32, x []vector) []vector {
	nodes := len(x)
	adjacent, degree := make([]vector, nodes), make(vector, nodes)
	for i := range adjacent {
		adjacent[i] = make(vector, nodes)
		if !m.Sage {
			adjacent[i][i] = 1
		}
	}
	for _, p := range pairs {
		adjacent[p[0]][p[1]], adjacent[p[1]][p[0]] = 1, 1
	}
	for i, row := range adjacent {
		for _, v := range row {
			degree[i] += v
		}
	}
	for l := 1; l <= m.Layers; l++ {
		_, out := m.width(l)
		name := fmt.Sprintf("conv%d.", l)
		next := make([]vector, nodes)
		for i := range next {
			around := make(vector, len(x[0]))
			for j, v := range adjacent[i] {
				share := v / math.Sqrt(degree[i]*degree[j])
				if m.Sage {
					share = v / degree[i]
				}
				for k := range around {
					if v != 0 {
						around[k] += share * x[j][k]
					}
				}
			}
			next[i] = r.dense(around, name+"weight", out, true, name+"bias")
			if m.Sage {
				for k, v := range r.dense(x[i], name+"self", out, true, "") {
					next[i][k] += v
				}
			}
			if l < m.Layers {
				positive(next[i])
			}
		}
		x = next
	}
	return x
}

func split(data []float32, rows int) []vector {
	out := make([]vector, rows)
	for i := range out {
		for _, v := range data[i*len(data)/rows : (i+1)*len(data)/rows] {
			out[i] = append(out[i], float64(v))
		}
	}
	return out
}

func TestNetworksMatchReference(t *testing.T) {
	trials := networkTrials(t)
	cnn := CNN{Rows: 8, Columns: 10, Colours: 2, Channels: []int{3, 4}, Kernel: 3, Hidden: 6, Classes: 3}
	mean := CNN{Rows: 7, Columns: 5, Colours: 1, Channels: []int{3}, Kernel: 5, MeanPool: true, Hidden: 6, Classes: 4}
	each := func(f func(r networkReference, x vector) vector) func(networkReference, []vector) []vector {
		return func(r networkReference, x []vector) (out []vector) {
			for _, row := range x {
				out = append(out, f(r, row))
			}
			return out
		}
	}
	for name, scores := range map[string]func(r networkReference, x []vector) []vector{
		"mlp": each(func(r networkReference, x vector) vector {
			return r.mlp(MLP{Inputs: 7, Hidden: []int{9, 8}, Classes: 3}, x)
		}),
		"cnn":      each(func(r networkReference, x vector) vector { return r.cnn(cnn, x) }),
		"cnn-mean": each(func(r networkReference, x vector) vector { return r.cnn(mean, x) }),
		"gcn": func(r networkReference, x []vector) []vector {
			return r.graphNet(GraphNet{Inputs: 5, Hidden: 6, Classes: 3, Layers: 2}, ring(8), x)
		},
		"sage": func(r networkReference, x []vector) []vector {
			return r.graphNet(GraphNet{Sage: true, Inputs: 5, Hidden: 4, Classes: 3, Layers: 3}, ring(8), x)
		},
	} {
		tr := trials[name]
		p, err := tr.task.Eval()
		in := taskInputs(tr.task, tr.w, tr.batch, AdamW{}, 0)
		out := mustRun(t, mustCompile(t, p, err), evalInputs(tr.task, in))
		y := tr.batch["y"].I32()
		var loss, right, total float64
		for i, row := range scores(networkReference{reference{w: tr.w}}, split(tr.batch["x"].F32(), len(y))) {
			if mask := tr.batch["mask"]; mask != nil && mask.F32()[i] == 0 {
				continue
			}
			loss += crossEntropyOf(row, y[i])
			total++
			best := true
			for _, v := range row {
				best = best && v <= row[y[i]]
			}
			if best {
				right++
			}
		}
		checkNear(t, name+" loss", scalar(out["loss"]), loss/total, 1e-4)
		checkNear(t, name+" accuracy", scalar(out["accuracy"]), right/total, 1e-6)
	}
}
