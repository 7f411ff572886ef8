package suite

import (
	"errors"
	"fmt"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/starling-network/starling/compute/device"
	"github.com/starling-network/starling/compute/kernel"
)

// clang is the compiler of OpenCL C that pocl has, which compiles for NVIDIA's GPUs, too.
const clang = "clang-15"

// builtins say which operations of a GPU the functions of OpenCL C are that compute with floats. The others, which a
// driver has to have, are left open.
const builtins = `
#define PTX_FUNCTION(name, T, to) \
	__attribute__((overloadable)) static inline T ptx_##name(T x) { return to(x); }
PTX_FUNCTION(sqrt, float, __builtin_sqrtf)
PTX_FUNCTION(floor, float, __builtin_floorf)
PTX_FUNCTION(ceil, float, __builtin_ceilf)
PTX_FUNCTION(rint, float, __builtin_rintf)
#ifdef cl_khr_fp64
#pragma OPENCL EXTENSION cl_khr_fp64 : enable
PTX_FUNCTION(sqrt, double, __builtin_sqrt)
PTX_FUNCTION(trunc, double, __builtin_trunc)
#endif
#define sqrt ptx_sqrt
#define floor ptx_floor
#define ceil ptx_ceil
#define rint ptx_rint
#define trunc ptx_trunc
`

// Two meanings of fma: that of OpenCL C, and a product and a sum that a compiler may not contract.
const (
	fused   = "#define fma __builtin_fmaf\n"
	unfused = "#define fma(x, y, z) ((x) * (y) + (z))\n"
)

// open are the functions that a driver has to have: positions, integers, and barriers.
var open = regexp.MustCompile(
	`^_Z\d+(get_(global|local|group)_id|min|max|clz|mul_hi|barrier|atomic_min)[a-zA-Z0-9_]*$`)

// The instructions with floats that give the same bits on every GPU: of arithmetic those that round to the nearest,
// which PTX never contracts and which keep subnormals; conversions with a rounding, or to a wider type; moves; and
// the smaller and the larger of two, which compilers take where neither is NaN.
var rounded = regexp.MustCompile(`^((add|sub|mul|div|sqrt|rcp)\.rn\.f(32|64)|fma\.rn\.f32|` +
	`cvt\.(rn|rzi|rmi|rpi|rni)\.\S+|cvt\.f64\.f32|` +
	`(mov|selp|neg|abs|min|max)\.f(32|64)|setp\.[a-z.]+\.f(32|64)|(ld|st)\.\S+)$`)

// loose is what makes an instruction another one on another GPU.
var loose = regexp.MustCompile(`\.(ftz|approx|full|sat)\b`)

// instruction is one line of PTX, after a guard.
var instruction = regexp.MustCompile(`^\s*(?:@!?%p\d+\s+)?([a-z][a-z0-9_.]*\.f(?:32|64)[a-z0-9_.]*)\s`)

// external is a function that PTX leaves open.
var external = regexp.MustCompile(`(?m)^\.extern \.func\s+(?:\([^)]*\)\s*)?(\S+)`)

// lint lists what a GPU could compute otherwise, by lines of PTX.
func lint(ptx string) (list []string) {
	for _, f := range external.FindAllStringSubmatch(ptx, -1) {
		if !open.MatchString(f[1]) {
			list = append(list, "calls "+f[1])
		}
	}
	for line := range strings.Lines(ptx) {
		m := instruction.FindStringSubmatch(line)
		if m == nil {
			continue
		}
		if name := m[1]; !rounded.MatchString(name) || loose.MatchString(name) {
			list = append(list, strings.TrimSpace(line))
		}
	}
	return list
}

// needClang skips a test on a machine without the compiler.
func needClang(t *testing.T) {
	t.Helper()
	if _, err := exec.LookPath(clang); err != nil {
		t.Skipf("the code of kernels for NVIDIA's GPUs is not looked at: there is no %s (apt-get install %[1]s)", clang)
	}
}

// compile compiles a source to PTX.
func compile(t *testing.T, source string, options ...string) string {
	t.Helper()
	arguments := slices.Concat([]string{"-x", "cl", "-target", "nvptx64-nvidia-cuda", "-Xclang",
		"-target-cpu", "-Xclang", "sm_70", "-Xclang", "-finclude-default-header", "-O1"}, options,
		[]string{"-S", "-", "-o", "-"})
	cmd := exec.Command(clang, arguments...)
	cmd.Stdin = strings.NewReader(source)
	var said strings.Builder
	cmd.Stderr = &said
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v: %.2000s", err, &said)
	}
	return string(out)
}

// listener is a device that keeps the source that it is to compile, and compiles nothing.
type listener struct {
	device.Device
	source string
}

var errHeard = errors.New("heard")

// Build implements device.Device.
func (l *listener) Build(source string) (device.Code, error) {
	l.source = source
	return nil, errHeard
}

// Numerics implements device.Device.
func (*listener) Numerics() []uint32 { return []uint32{kernel.Version1, kernel.Version2} }

// sourceOf is the kernels of all cases in a version of the numerics, as one program.
func sourceOf(t *testing.T, numerics uint32) string {
	t.Helper()
	all := strings.TrimPrefix(device.Source(numerics), device.Options)
	begins, printed := 0, "" // what every program begins with, and the rest
	for i, c := range cases(numerics, 64) {
		var l listener
		if _, err := device.Compile(&l, c.program, nil, 1); !errors.Is(err, errHeard) {
			t.Fatal(err)
		}
		for begins = 0; begins < min(len(all), len(l.source)) && all[begins] == l.source[begins]; begins++ {
		}
		printed += strings.ReplaceAll(l.source[begins:], "group_", fmt.Sprintf("case_%d_group_", i))
	}
	return all[:begins] + printed
}

// TestKernelsGiveRoundedPTX compiles all kernels for NVIDIA's GPUs, with the options with which drivers compile them.
func TestKernelsGiveRoundedPTX(t *testing.T) {
	needClang(t)
	options := strings.Fields(device.Options)
	for v := kernel.Version1; v <= kernel.Newest; v++ {
		source := sourceOf(t, v)
		whole := compile(t, builtins+fused+source, options...)
		for _, wrong := range lint(whole) {
			t.Errorf("version %d: %s", v, wrong)
		}
		for _, want := range []string{"fma.rn.f32", "div.rn.f32", "sqrt.rn.f32"} {
			if !strings.Contains(whole, want) {
				t.Errorf("version %d has no %s: the functions are not those of the kernels", v, want)
			}
		}
		apart := compile(t, builtins+unfused+source, options...)
		if n := strings.Count(apart, "fma."); n > 0 {
			t.Errorf("version %d has %d fused multiply-adds where its source has none", v, n)
		}
	}
}

// TestLintSeesWhatCompilersDo compiles a kernel in ways that the options and the text of the kernels exclude.
func TestLintSeesWhatCompilersDo(t *testing.T) {
	needClang(t)
	const source = "__kernel void f(__global float *x) {" +
		"x[0] = x[1] * x[2] + sqrt(x[3]) / x[4]; x[5] = fmax(x[6], x[7]); }"
	for option, want := range map[string]string{
		"-cl-std=CL1.2": "calls _Z4fmaxff", "-fdenormal-fp-math=preserve-sign": "mul.rn.ftz.f32",
		"-cl-fast-relaxed-math": "div.approx", "-cl-unsafe-math-optimizations": "div.approx",
	} {
		said := strings.Join(lint(compile(t, uncontracted+builtins+unfused+source, option)), "\n")
		if !strings.Contains(said, want) {
			t.Errorf("%s: want %q among\n%s", option, want, said)
		}
	}
	if !strings.Contains(compile(t, builtins+unfused+source), "fma.rn.f32") {
		t.Error("a product and a sum are not contracted where nothing forbids it")
	}
	for option, want := range map[string]bool{"-cl-std=CL1.2": true, device.Options: false} {
		ir := compile(t, builtins+unfused+source, append(strings.Fields(option), "-emit-llvm")...)
		if got := strings.Contains(ir, "fdiv float") && strings.Contains(ir, "!fpmath"); got != want {
			t.Errorf("with %s a division may be off by 2.5 units in the last place: %v, want %v", option, got, want)
		}
	}
}

// uncontracted is the line with which kernels begin.
const uncontracted = "#pragma OPENCL FP_CONTRACT OFF\n"
