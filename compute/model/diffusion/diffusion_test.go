package diffusion

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/starling-network/starling/compute/cpu"
	"github.com/starling-network/starling/compute/data/picture"
	"github.com/starling-network/starling/compute/model"
	"github.com/starling-network/starling/compute/optimizer"
	"github.com/starling-network/starling/compute/philox"
	"github.com/starling-network/starling/compute/program"
	"github.com/starling-network/starling/compute/tensor"
	"github.com/starling-network/starling/compute/train"
)

var small = picture.Size{Rows: 4, Columns: 8, Channels: 3}

func parsed(t testing.TB, name string, config map[string]any) Network {
	t.Helper()
	n, err := Parse(name, config, small, 60)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// networks are one of each kind, with hidden layers whose input is added to their output and others.
func networks(t testing.TB) map[string]Network {
	return map[string]Network{MLP: parsed(t, MLP, map[string]any{"hidden_sizes": []any{7, 5, 5}}),
		CNN:    parsed(t, CNN, map[string]any{"conv_channels": []any{4, 3, 2}}),
		"flat": parsed(t, CNN, map[string]any{"conv_channels": []any{4}, "kernel_size": 5})}
}

// strong are weights of which every one counts.
func strong(n Network) map[string]*tensor.Tensor {
	w := map[string]*tensor.Tensor{}
	for i, named := range n.Tensors() {
		t := tensor.New(named.Shape)
		philox.NormalTo(t.F32(), 9, uint64(i))
		for k := range t.F32() {
			t.F32()[k] *= 0.3
		}
		w[train.Param+named.Name] = t
	}
	return w
}

func compiled(t testing.TB, p *program.Program, err error) *cpu.Exec {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	x, err := cpu.Compile(p, 1)
	if err != nil {
		t.Fatal(err)
	}
	return x
}

func run(t testing.TB, x *cpu.Exec, in map[string]*tensor.Tensor) map[string]*tensor.Tensor {
	t.Helper()
	out, err := x.Run(in)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// plain is the estimate of the noise in an image, with loops in float64.
func plain(n Network, w map[string]*tensor.Tensor, x []float64, time float64) []float64 {
	at := func(name string) []float32 { return w[train.Param+name].F32() }
	dense := func(name string, x []float64) []float64 {
		y := make([]float64, len(at(name+".bias")))
		for o := range y {
			y[o] = float64(at(name + ".bias")[o])
			for i, v := range x {
				y[o] += v * float64(at(name + ".weight")[o*len(x)+i])
			}
		}
		return y
	}
	var times []float64
	for _, f := range []func(float64) float64{math.Sin, math.Cos} {
		for i := range timeWidth / 2 {
			times = append(times, f(time*1000/float64(n.timesteps)*math.Pow(10, -4*float64(i)/(timeWidth/2))))
		}
	}
	hidden := func(name string, y []float64) []float64 {
		moved := dense(name+".time", times)
		for k := range y {
			v := y[k] + moved[k%len(moved)]
			y[k] = v / (1 + math.Exp(-v))
		}
		return y
	}
	if n.architecture == MLP {
		for i, width := range n.widths {
			name := fmt.Sprintf("layer%d", i+1)
			y := hidden(name, dense(name, x))
			for k := range y {
				if i > 0 && width == n.widths[i-1] {
					y[k] += x[k]
				}
			}
			x = y
		}
		return dense("out", x)
	}
	convolution := func(name string, x []float64, level int) []float64 {
		bias, rows, columns := at(name+".bias"), n.size.Rows>>level, n.size.Columns>>level
		in := len(x) / rows / columns
		y := make([]float64, rows*columns*len(bias))
		for i := range y {
			row, column, out := i/len(bias)/columns, i/len(bias)%columns, i%len(bias)
			y[i] = float64(bias[out])
			for k := range n.kernel * n.kernel * in {
				c, dr, dc := k/n.kernel/n.kernel, k/n.kernel%n.kernel-n.kernel/2, k%n.kernel-n.kernel/2
				if r, l := row+dr, column+dc; r >= 0 && l >= 0 && r < rows && l < columns {
					y[i] += x[(r*columns+l)*in+c] * float64(at(name + ".weight")[out*in*n.kernel*n.kernel+k])
				}
			}
		}
		return y
	}
	var seen [][]float64
	for i := range n.widths {
		if i > 0 { // half the rows and columns
			columns, in := n.size.Columns>>i, n.widths[i-1]
			half := make([]float64, len(x)/4)
			for k, v := range x {
				row, column := k/in/columns/2, k/in%(2*columns)
				half[(row/2*columns+column/2)*in+k%in] += v / 4
			}
			x = half
		}
		name := fmt.Sprintf("down%d", i+1)
		x = hidden(name, convolution(name, x, i))
		seen = append(seen, x)
	}
	deep := hidden("middle", convolution("middle", x, len(n.widths)-1))
	for k, v := range x {
		deep[k] += v
	}
	x = deep
	for i := len(n.widths) - 2; i >= 0; i-- {
		columns, in := n.size.Columns>>i, n.widths[i+1]
		var both []float64
		for pixel := range (n.size.Rows >> i) * columns {
			from := (pixel/columns/2*(columns/2) + pixel%columns/2) * in
			both = append(append(both, x[from:from+in]...), seen[i][pixel*n.widths[i]:(pixel+1)*n.widths[i]]...)
		}
		name := fmt.Sprintf("up%d", i+1)
		x = hidden(name, convolution(name, both, i))
	}
	return convolution("out", x, 0)
}

// The estimated noise is that of plain loops.
func TestNoise(t *testing.T) {
	for name, n := range networks(t) {
		w := strong(n)
		in := map[string]*tensor.Tensor{"x": tensor.New(tensor.Make(tensor.Float32, 3, n.Example())),
			"times": tensor.FromF32([]float32{0, 17, 59}, 3)}
		philox.NormalTo(in["x"].F32(), 2, 0)
		for k, v := range w {
			in[k] = v
		}
		p, err := model.Noise(n, 3)
		got := run(t, compiled(t, p, err), in)["noise"].F32()
		for i := range 3 {
			x := make([]float64, n.Example())
			for k := range x {
				x[k] = float64(in["x"].F32()[i*n.Example()+k])
			}
			for k, want := range plain(n, w, x, float64(in["times"].F32()[i])) {
				if g := float64(got[i*n.Example()+k]); math.Abs(g-want) > 1e-4*(1+math.Abs(want)) {
					t.Errorf("%s: value %d of image %d is %v, want %v", name, k, i, g, want)
				}
			}
		}
	}
}

// words are numbers of a stream as record.Normal and record.Whole read them.
func words(seed, stream, index uint64, n int) []float64 {
	all, out := make([]uint32, n), make([]float64, n)
	philox.BlocksTo(all, seed, stream, index)
	for i, word := range all {
		out[i] = (float64(word) + 0.5) / (1 << 32)
	}
	return out
}

// wanted is the loss at given times with the noise of a key.
func wanted(n Network, w map[string]*tensor.Tensor, tokens []int32, rows int, times []float64, key [3]uint64) float64 {
	const site = 1<<20 + 1
	sum, count := 0.0, rows*n.Example()
	u, v := words(key[0], key[1]+site, key[2], count), words(key[0], key[1]+site+1, key[2], count)
	for i := range rows {
		product := 1.0
		for t := range int(times[i]) + 1 {
			product *= 1 - (0.1+19.9*float64(t)/float64(n.timesteps-1))/float64(n.timesteps)
		}
		x, noise := make([]float64, n.Example()), make([]float64, n.Example())
		for k := range x {
			at := i*n.Example() + k
			noise[k] = math.Sqrt(-2*math.Log(u[at])) * math.Cos(2*math.Pi*v[at])
			x[k] = math.Sqrt(product)*(float64(tokens[i*(n.Example()+1)+k])-127.5)/127.5 + math.Sqrt(1-product)*noise[k]
		}
		for k, e := range plain(n, w, x, times[i]) {
			sum += (e - noise[k]) * (e - noise[k]) / float64(count)
		}
	}
	return sum
}

func images(n Network, rows int) []int32 {
	random, tokens := philox.New(8, 0), []int32{}
	for range rows * (n.Example() + 1) {
		tokens = append(tokens, int32(random.Uint64n(256)))
	}
	return tokens
}

// The loss of a step has the drawn times and noise, and that of an evaluation the same ones for every checkpoint.
// Gradients are the differences of the loss, and parts of a batch give those of the whole.
func TestLoss(t *testing.T) {
	const rows = 4
	key := [3]uint64{5, 40, 1 << 33}
	for name, n := range networks(t) {
		w, tokens := strong(n), images(n, rows)
		in := map[string]*tensor.Tensor{"tokens": tensor.FromI32(tokens, rows, n.Example()+1)}
		for k, v := range w {
			in[k] = v
		}
		task, err := model.Denoise(n, model.Batch{Sequences: rows, Dropout: 0.5})
		if err != nil {
			t.Fatal(err)
		}
		p, err := task.Eval()
		out := run(t, compiled(t, p, err), in)
		times := []float64{7, 22, 37, 52}
		want := wanted(n, w, tokens, rows, times, [3]uint64{})
		if g := float64(out["loss"].F32()[0]); math.Abs(g-want) > 1e-4*want || out["mse"].F32()[0] != out["loss"].F32()[0] {
			t.Errorf("%s: the loss of an evaluation is %v, want %v", name, g, want)
		}
		for i, u := range words(key[0], key[1]+1<<20, key[2], rows) {
			times[i] = math.Floor(u * float64(n.timesteps))
		}
		want = wanted(n, w, tokens, rows, times, key)
		in["dice"] = tensor.New(tensor.Make(tensor.Int64, 3))
		for i, v := range key {
			tensor.As[int64](in["dice"].Bytes())[i] = int64(v)
		}
		for _, scalar := range []string{"lr", "c1", "c2"} {
			in[scalar] = tensor.FromF32([]float32{1})
			in[scalar].Shape = tensor.Make(tensor.Float32)
		}
		for _, micro := range []int{0, 2} {
			if task, err = model.Denoise(n, model.Batch{Sequences: rows, Micro: micro}); err != nil {
				t.Fatal(err)
			}
			p, err := task.TrainStep(optimizer.SGD{})
			x := compiled(t, p, err)
			stepped := run(t, x, in)
			if g := float64(stepped["loss"].F32()[0]); math.Abs(g-want) > 1e-4*want {
				t.Errorf("%s, parts of %d: the loss of a step is %v, want %v", name, micro, g, want)
			}
			for _, named := range n.Tensors() {
				v, after := w[train.Param+named.Name].F32(), slices.Clone(stepped[train.Param+named.Name].F32())
				for _, i := range []int{0, len(v) - 1} {
					const h = 1e-2
					was := v[i]
					v[i] = was + h
					up := float64(run(t, x, in)["loss"].F32()[0])
					v[i] = was - h
					down := float64(run(t, x, in)["loss"].F32()[0])
					v[i] = was
					want, got := (up-down)/(2*h), float64(was-after[i])
					if math.Abs(got-want) > 3e-3*(1+math.Abs(want)) {
						t.Errorf("%s, %s, element %d: gradient %v, want %v", name, named.Name, i, got, want)
					}
				}
			}
		}
	}
}

// The schedule is that of the paper: the noise of a step, what is left of the image, and the way back.
func TestSteps(t *testing.T) {
	n, err := Parse(MLP, nil, small, 1000)
	if err != nil {
		t.Fatal(err)
	}
	steps := n.Steps()
	for at, want := range map[int]float64{1: 1e-4 + 0.0199/999, 999: 0.02} { // the variances of steps
		if got := float64(steps[at].Deviation); math.Abs(got*got-want) > 1e-7 {
			t.Errorf("the variance of step %d is %v, want %v", at, got*got, want)
		}
	}
	if last := steps[999]; last.Kept > 0.0065 || last.Added < 0.9999 || steps[0].Deviation != 0 ||
		math.Abs(float64(steps[0].OfImage)-1) > 1e-6 || steps[0].OfOld != 0 {
		t.Errorf("first %+v, last %+v", steps[0], last)
	}
	for at, s := range steps[1:] { // an image whose noise is 0 stays
		if got := float64(s.OfImage) + float64(s.OfOld)*float64(s.Kept); math.Abs(got-float64(steps[at].Kept)) > 1e-5 {
			t.Errorf("step %d leads to %v of the image, want %v", at+1, got, steps[at].Kept)
		}
	}
}

func TestConfig(t *testing.T) {
	for name, n := range networks(t) {
		again, err := Read(n.JSON())
		if err != nil || string(again.JSON()) != string(n.JSON()) || again.Size() != small || again.Timesteps() != 60 ||
			again.Parameters() != n.Parameters() || again.Architecture() != n.architecture {
			t.Errorf("%s: %s\n%v", name, again.JSON(), err)
		}
	}
	if n := parsed(t, CNN, map[string]any{"conv_channels": []any{4, 2}}); n.Parameters() != 4*3*9+4+4*32+4+2*4*9+2+2*32+2+
		2*2*9+2+2*32+2+4*6*9+4+4*32+4+3*4*9+3 {
		t.Errorf("%d parameters", n.Parameters())
	}
	if _, err := Parse(CNN, map[string]any{"conv_channels": []any{4, 2, 2, 2}}, small, 60); err == nil {
		t.Error("4 rows are halved three times")
	}
	for _, n := range networks(t) {
		if n.Example() != small.Values() {
			t.Errorf("%d values", n.Example())
		}
	}
	const whole = `{"model_type": "mlp", "image_size": [2, 2], "num_channels": 1, "num_train_timesteps": 60}`
	for change, want := range map[[2]string]string{
		{`60}`, `60, "conv_channels": [3]}`}:       "conv_channels",
		{`"mlp"`, `"gpt2"`}:                        "gpt2",
		{`[2, 2]`, `[2, 0]`}:                       "image_size",
		{`: 1,`, `: 2,`}:                           "num_channels",
		{`60}`, `49}`}:                             "num_train_timesteps",
		{`, "num_train_timesteps": 60`, ``}:        "num_train_timesteps",
		{`60}`, `60, "hidden_sizes": []}`}:         "hidden_sizes",
		{`60}`, ``}:                                "JSON",
		{`"mlp"`, `"cnn", "kernel_size": 4`}:       "kernel_size",
		{`"mlp"`, `"cnn", "conv_channels": ["a"]`}: "conv_channels",
	} {
		config := strings.Replace(whole, change[0], change[1], 1)
		if _, err := Read([]byte(config)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", config, err)
		}
	}
	n := parsed(t, MLP, nil)
	for _, b := range []model.Batch{{}, {Sequences: 4, Micro: 3}, {Sequences: 4, Half: true}, {Sequences: 4, Silent: 2}} {
		if _, err := model.Denoise(n, b); err == nil {
			t.Errorf("%+v is taken", b)
		}
	}
}

func FuzzRead(f *testing.F) {
	f.Add([]byte(`{"model_type": "mlp", "image_size": [2, 2], "num_channels": 1, "num_train_timesteps": 60}`))
	f.Fuzz(func(t *testing.T, raw []byte) {
		if n, err := Read(raw); err == nil {
			if again, err := Read(n.JSON()); err != nil || string(again.JSON()) != string(n.JSON()) {
				t.Fatalf("%s: %v", n.JSON(), err)
			}
		}
	})
}
