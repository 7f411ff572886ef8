package opencl

import (
	"flag"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/starling-network/starling/compute/device"
	"github.com/starling-network/starling/compute/device/suite"
	"github.com/starling-network/starling/compute/kernel"
)

// mutant is a device that compiles another text.
type mutant struct {
	*Device
	old, new string
}

// Build implements device.Device.
func (m mutant) Build(source string) (device.Code, error) {
	return m.Device.Build(strings.Replace(source, m.old, m.new, 1))
}

var long = flag.Bool("long", os.Getenv("STARLING_LONG") != "",
	"change every line and run more programs, as .ci/run does")

// TestSuiteSeesMutants changes one line of the kernels in the ways in which a device or its compiler may be wrong: each
// has to be seen by the suite, in the operator named. Without -long, one line is changed.
func TestSuiteSeesMutants(t *testing.T) {
	d := opened(t)
	for name, m := range map[string]struct{ old, new, kind string }{
		"contraction":              {"FP_CONTRACT OFF", "FP_CONTRACT ON", "Gelu"},
		"padding of k":             {"int steps = (int)min((long)STEP, end - from);", "int steps = STEP;", "Dot"},
		"chunks of another length": {"#define CHUNK 512", "#define CHUNK 1024", "Dot"},
		"lanes in another order": {"if (l < w) lanes[l] += lanes[l + w];",
			"if (l < w) lanes[l] += lanes[2 * w - 1 - l];", "ReduceSum"},
		"the built-in maximum": {
			"return x != x ? x : y != y ? y : x == y ? as_float(as_uint(x) & as_uint(y)) : x > y ? x : y;",
			"return fmax(x, y);", "Max"},
		"scaling in one step": {"return (y * pow2_(half_)) * pow2_((int)n - half_);", "return y * pow2_((int)n);",
			"Exp"},
		"a reciprocal for a division": {"q = e / (1.0f + e);", "q = e * (1.0f / (1.0f + e));", "Logistic"},
		"fused multiply-adds": {"float p = c[n - 1];\n\tfor (int i = n - 2; i >= 0; i--) p = c[i] + x * p;",
			"float p = c[n - 1];\n\tfor (int i = n - 2; i >= 0; i--) p = fma(x, p, c[i]);", "Log"},
		"blocks of larger numbers":           {"#define MOST_BLOCK 38", "#define MOST_BLOCK 39", "DotExact"},
		"a fraction of 2/pi that is cut off": {"(zeros ? g >> (32 - zeros) : 0)", "0", "Sin"},
	} {
		if !*long && name != "contraction" {
			continue
		}
		t.Run(name, func(t *testing.T) {
			if !strings.Contains(device.Source(kernel.Version1)+device.Source(kernel.Version2), m.old) {
				t.Fatalf("the kernels do not have %q", m.old)
			}
			c, seen, r := suite.New(mutant{d, m.old, m.new}, 4000), false, suite.Report{}
			defer c.Close()
			for at := 0; at < c.Cases() && !seen; at++ {
				part, err := c.Run(at, 0)
				if err != nil {
					t.Fatal(err)
				}
				r.Add(part)
				seen = slices.ContainsFunc(r.Results, func(x suite.Result) bool { return x.Kind == m.kind && x.Differ > 0 })
			}
			if !seen {
				t.Errorf("no element of %s differs", m.kind)
			}
			t.Log(r.Failed())
		})
	}
}
