package vision

import (
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/starling-network/starling/compute/cpu"
	"github.com/starling-network/starling/compute/data/picture"
	"github.com/starling-network/starling/compute/model"
	"github.com/starling-network/starling/compute/model/architecture"
	"github.com/starling-network/starling/compute/philox"
	"github.com/starling-network/starling/compute/tensor"
)

var small = picture.Size{Rows: 6, Columns: 5, Channels: 3}

func parsed(t *testing.T, name string, config map[string]any) Network {
	t.Helper()
	n, err := Parse(name, config, small, []string{"ant", "bee", "cat"})
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// A configuration is read as it was written.
func TestConfig(t *testing.T) {
	n := parsed(t, MLP, map[string]any{"hidden_sizes": []any{7, 5}})
	again, err := Read(n.JSON())
	if err != nil || string(again.JSON()) != string(n.JSON()) || again.Size() != small ||
		!slices.Equal(again.Labels(), n.Labels()) || again.Parameters() != n.Parameters() {
		t.Errorf("%s\n%v", again.JSON(), err)
	}
	c := parsed(t, CNN, map[string]any{"conv_channels": []any{4, 3}, "kernel_size": 5, "pooling": "mean"})
	if again, err := Read(c.JSON()); err != nil || string(again.JSON()) != string(c.JSON()) ||
		c.Parameters() != 4*3*25+4+3*4*25+3+3*32+32+32*3+3 {
		t.Errorf("%d parameters, %v", c.Parameters(), err)
	}
	for key, value := range map[string]any{"conv_channels": []any{4, 3, 2}, "kernel_size": 4, "pooling": "min"} {
		if _, err := Parse(CNN, map[string]any{key: value}, small, n.Labels()); err == nil ||
			!strings.Contains(err.Error(), key) {
			t.Errorf("%s: %v: %v", key, value, err)
		}
	}
	if want := 90*7 + 7 + 7*5 + 5 + 5*3 + 3; n.Parameters() != want {
		t.Errorf("%d parameters, want %d", n.Parameters(), want)
	}
	const whole = `{"model_type": "mlp", "image_size": [2, 2], "num_channels": 1, "id2label": {"0": "a", "1": "b"}}`
	for change, want := range map[[2]string]string{
		{`}}`, `}, "conv_channels": [3]}`}: "conv_channels",
		{`"mlp"`, `"gpt2"`}:                "gpt2",
		{`[2, 2]`, `[2, 0]`}:               "image_size",
		{`: 1,`, `: 2,`}:                   "num_channels",
		{`"1": `, `"2": `}:                 "class 1",
		{`, "1": "b"`, ``}:                 "1 classes",
		{`}}`, `}, "hidden_sizes": [0]}`}:  "hidden_sizes",
		{`}}`, `}, "width": 3}`}:           "width",
		{`}}`, ``}:                         "JSON",
	} {
		config := strings.Replace(whole, change[0], change[1], 1)
		if _, err := Read([]byte(config)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", config, err)
		}
	}
}

func FuzzRead(f *testing.F) {
	f.Add([]byte(`{"model_type": "mlp", "image_size": [2, 2], "num_channels": 1, "id2label": {"0": "a", "1": "b"}}`))
	f.Fuzz(func(t *testing.T, raw []byte) {
		if n, err := Read(raw); err == nil {
			if again, err := Read(n.JSON()); err != nil || string(again.JSON()) != string(n.JSON()) {
				t.Fatalf("%s: %v", n.JSON(), err)
			}
		}
	})
}

// The loss and the accuracy are those of plain loops.
func TestScores(t *testing.T) {
	const images = 9
	for name, n := range map[string]Network{
		"deep": parsed(t, MLP, map[string]any{"hidden_sizes": []any{7, 5}}),
		"flat": parsed(t, MLP, map[string]any{"hidden_sizes": []any{}}),
		"max":  parsed(t, CNN, map[string]any{"conv_channels": []any{4, 3}, "hidden_sizes": []any{6}}),
		"mean": parsed(t, CNN, map[string]any{"conv_channels": []any{4}, "kernel_size": 5, "pooling": "mean"}),
	} {
		task, err := model.Classify(n, model.Batch{Sequences: images, Micro: 3, Dropout: 0.5})
		if err != nil {
			t.Fatal(err)
		}
		p, err := task.Eval()
		if err != nil {
			t.Fatal(err)
		}
		exec, err := cpu.Compile(p, 1)
		if err != nil {
			t.Fatal(err)
		}
		w, in := architecture.Init(n.Tensors(), 3), map[string]*tensor.Tensor{}
		for i, named := range n.Tensors() {
			if strings.HasSuffix(named.Name, "bias") {
				philox.NormalTo(w[named.Name].F32(), 5, uint64(i))
			}
			in["p/"+named.Name] = w[named.Name]
		}
		random, tokens := philox.New(8, 0), []int32{}
		var loss, right float64
		for range images {
			class := int32(random.Uint64n(3))
			tokens = append(tokens, class)
			x := make([]float64, small.Values())
			for i := range x {
				v := int32(random.Uint64n(256))
				tokens, x[i] = append(tokens, v), (float64(v)-127.5)/127.5
			}
			tokens = append(tokens, 99) // the first of the next row
			scores := plainScores(n, w, x)
			sum := 0.0
			for _, s := range scores {
				sum += math.Exp(s)
			}
			loss += (math.Log(sum) - scores[class]) / images
			if scores[class] == slices.Max(scores) {
				right += 1.0 / images
			}
		}
		in["tokens"] = tensor.FromI32(tokens, images, small.Values()+2)
		out, err := exec.Run(in)
		if err != nil {
			t.Fatal(err)
		}
		if got := float64(out["loss"].F32()[0]); math.Abs(got-loss) > 1e-5*loss {
			t.Errorf("%s: loss %v, want %v", name, got, loss)
		}
		if got := float64(out["accuracy"].F32()[0]); math.Abs(got-right) > 1e-6 {
			t.Errorf("%s: accuracy %v, want %v", name, got, right)
		}
	}
}

// plainConvolved is an image of rows, columns and channels after a convolution to other channels, relu and pooling.
func plainConvolved(n Network, weight, bias []float32, x []float64, shape [4]int) []float64 {
	rows, columns, in, out := shape[0], shape[1], shape[2], shape[3]
	y := make([]float64, rows/2*(columns/2)*out)
	for r := range rows / 2 * 2 {
		for c := range columns / 2 * 2 {
			for o := range out {
				sum := float64(bias[o])
				for k := range n.kernel * n.kernel * in {
					dr, dc, i := r+k/in/n.kernel-n.kernel/2, c+k/in%n.kernel-n.kernel/2, k%in
					if min(dr, dc) >= 0 && dr < rows && dc < columns {
						sum += x[(dr*columns+dc)*in+i] * float64(weight[(o*in+i)*n.kernel*n.kernel+k/in])
					}
				}
				at := (r/2*(columns/2)+c/2)*out + o
				if v := max(0, sum); n.mean {
					y[at] += v / 4
				} else {
					y[at] = max(y[at], v)
				}
			}
		}
	}
	return y
}

// plainScores are the scores of one image.
func plainScores(n Network, w map[string]*tensor.Tensor, x []float64) []float64 {
	list := n.Tensors()
	in, rows, columns := small.Channels, small.Rows, small.Columns
	for _, out := range n.channels {
		x = plainConvolved(n, w[list[0].Name].F32(), w[list[1].Name].F32(), x, [4]int{rows, columns, in, out})
		in, rows, columns, list = out, rows/2, columns/2, list[2:]
	}
	for i := 0; i < len(list); i += 2 {
		weight, bias := w[list[i].Name].F32(), w[list[i+1].Name].F32()
		y := make([]float64, len(bias))
		for o := range y {
			y[o] = float64(bias[o])
			for k, v := range x {
				y[o] += v * float64(weight[o*len(x)+k])
			}
			if i+2 < len(list) {
				y[o] = max(0, y[o])
			}
		}
		x = y
	}
	return x
}
