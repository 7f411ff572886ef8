package record

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path"
	"reflect"
	"regexp"
	"strings"
	"testing"
	"unsafe"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/notimplemented"
	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/compute/support/backendtest"

	"github.com/starling-network/starling/compute/admit"
	"github.com/starling-network/starling/compute/cpu"
	"github.com/starling-network/starling/compute/program"
	"github.com/starling-network/starling/compute/tensor"
)

// engine is a compute.Backend for the tests: what it builds is recorded, and run as a program.
type engine struct{ *notimplemented.Backend }

func (engine) Name() string           { return "record" }
func (engine) HasSharedBuffers() bool { return false }

func (engine) Builder(string) compute.Builder {
	r := newRecorder(program.NewBuilder(), nil)
	return engineBuilder{r, &engineFunction{r.main, map[compute.Value]bool{}}}
}

func (engine) Capabilities() compute.Capabilities {
	c := compute.Capabilities{Operations: map[compute.OpType]bool{}, DTypes: map[dtypes.DType]bool{}}
	for _, p := range dtypePairs {
		c.DTypes[p.gomlx] = true
	}
	for _, op := range operations {
		c.Operations[op] = true
	}
	return c
}

// operations that the recorder has, in some form.
var operations = []compute.OpType{
	compute.OpTypeParameter, compute.OpTypeConstant, compute.OpTypeIdentity, compute.OpTypeConvertDType, compute.OpTypeAbs,
	compute.OpTypeCeil, compute.OpTypeCos, compute.OpTypeErf, compute.OpTypeExp, compute.OpTypeFloor, compute.OpTypeLog,
	compute.OpTypeNeg, compute.OpTypeRound, compute.OpTypeRsqrt, compute.OpTypeSign, compute.OpTypeSin, compute.OpTypeSqrt,
	compute.OpTypeTanh, compute.OpTypeLogistic, compute.OpTypeLogicalNot, compute.OpTypeAdd, compute.OpTypeDiv,
	compute.OpTypeMax, compute.OpTypeMin, compute.OpTypeMul, compute.OpTypePow, compute.OpTypeSub,
	compute.OpTypeLogicalAnd,
	compute.OpTypeLogicalOr, compute.OpTypeEqual, compute.OpTypeNotEqual, compute.OpTypeLessThan,
	compute.OpTypeLessOrEqual,
	compute.OpTypeGreaterThan, compute.OpTypeGreaterOrEqual, compute.OpTypeWhere, compute.OpTypeReshape,
	compute.OpTypeTranspose, compute.OpTypeBroadcastInDim, compute.OpTypeSlice, compute.OpTypePad,
	compute.OpTypeConcatenate,
	compute.OpTypeIota, compute.OpTypeReverse, compute.OpTypeReduceSum, compute.OpTypeReduceMax, compute.OpTypeReduceMin,
	compute.OpTypeDotGeneral, compute.OpTypeGather, compute.OpTypeScatterSum, compute.OpTypeConvGeneral,
	compute.OpTypeReduceWindow, compute.OpTypeSelectAndScatterMax,
}

func (e engine) BufferFromFlatData(_ compute.DeviceNum, flat any, s shapes.Shape) (compute.Buffer, error) {
	shape, err := toShape(s)
	if err != nil {
		return nil, err
	}
	t, err := tensor.FromBytes(shape, bytesOf(flat))
	if err != nil {
		return nil, err
	}
	return engineBuffer{t: t}, nil
}

// bytesOf is the memory of a slice of elements.
func bytesOf(flat any) []byte {
	v := reflect.ValueOf(flat)
	return unsafe.Slice((*byte)(v.UnsafePointer()), v.Len()*int(v.Type().Elem().Size()))
}

type engineBuffer struct {
	t       *tensor.Tensor
	doubles bool
}

func (engineBuffer) Backend() compute.Backend              { return engine{} }
func (engineBuffer) Finalize() error                       { return nil }
func (engineBuffer) DeviceNum() (compute.DeviceNum, error) { return 0, nil }
func (engineBuffer) Data() (any, error)                    { return nil, errors.New("no shared memory") }
func (b engineBuffer) CopyToDevice(compute.DeviceNum) (compute.Buffer, error) {
	return engineBuffer{b.t.Clone(), b.doubles}, nil
}

func (b engineBuffer) Shape() (shapes.Shape, error) {
	s := fromShape(b.t.Shape)
	if b.doubles {
		s.DType = dtypes.Float64
	}
	return s, nil
}

func (b engineBuffer) ToFlatData(flat any) error {
	if to, ok := flat.([]float64); ok {
		for i, x := range b.t.F32() {
			to[i] = float64(x)
		}
		return nil
	}
	copy(bytesOf(flat), b.t.Bytes())
	return nil
}

// engineFunction is the recorder with the additions that the suite needs for comparisons: results that it asks for in
// float64 are returned as float64, which holds every float32.
type engineFunction struct {
	*function
	doubles map[compute.Value]bool
}

func (f *engineFunction) ConvertDType(x compute.Value, d dtypes.DType) (compute.Value, error) {
	if d != dtypes.Float64 {
		return f.function.ConvertDType(x, d)
	}
	v, err := f.function.ConvertDType(x, dtypes.Float32)
	f.doubles[v] = true
	return v, err
}

type engineBuilder struct {
	*recorder
	f *engineFunction
}

func (e engineBuilder) Main() compute.Function { return e.f }

func (e engineBuilder) Compile() (compute.Executable, error) {
	f := e.f
	doubles := make([]bool, len(f.out))
	for i, v := range f.out {
		f.b.Output(fmt.Sprint(i), v)
		doubles[i] = f.doubles[v]
	}
	p, err := f.b.Finish()
	if err != nil {
		return nil, err
	}
	if p = p.Simplify(); admit.Verify(p, program.DefaultLimits) != nil {
		return nil, admit.Verify(p, program.DefaultLimits)
	}
	return compiled{p: p, doubles: doubles}, nil
}

type compiled struct {
	recorded
	p       *program.Program
	doubles []bool // outputs
}

func (c compiled) Execute(in []compute.Buffer, _ []bool, _ compute.DeviceNum) ([]compute.Buffer, error) {
	inputs := c.p.Inputs()
	if len(in) != len(inputs) {
		return nil, fmt.Errorf("%d tensors given for %d inputs", len(in), len(inputs))
	}
	named := map[string]*tensor.Tensor{}
	for i, b := range in {
		named[inputs[i].Name] = b.(engineBuffer).t
	}
	x, err := cpu.Compile(c.p, 2)
	if err != nil {
		return nil, err
	}
	out, err := x.Run(named)
	if err != nil {
		return nil, err
	}
	var list []compute.Buffer
	for i, o := range c.p.Outputs {
		list = append(list, engineBuffer{out[o.Name], c.doubles[i]})
	}
	return list, nil
}

// inapplicable says of each test of the suite that fails why it does not apply. Tests of operators that Capabilities
// does not have are skipped by the suite itself.
var inapplicable = []struct{ tests, why string }{
	{`^BinaryOps/Add$`, "a part is of uint64; the others pass"},
	{`^BinaryOps/(Mul/Large-2D|Pow)$|^SpecialOps/Reduce/Max$|^ConvGeneral/.*/Float64$`, "float64"},
	{`^ConvGeneral/.*/Uint64$`, "uint64"},
	{`^ConvGeneral/.*/Int32$`, "products are of float32"},
	{`^ConvGeneral/1D_with_(feature|batch)_groups/.*Float`, "convolutions have one group"},
	{`^ConvGeneral/3D/.*Float`, "windows have at most 4 axes"},
	{`^SpecialOps/Gather$`, "whole rows along axis 0 are looked up"},
	{`^SpecialOps/Slice/EmptySlice`, "no tensor is empty"},
	{`^SpecialOps/ReduceWindow/F32_1D_Product`, "no product of windows"},
}

// These tests crash where they do not apply: they use results that could not be recorded. All are of float64.
const crashes = "^TestSuite$/^DotGeneral$/^float64$|^TestSuite$/^DotGeneral$/^DTypes$/Float64"

var rewrite = flag.Bool("rewrite", false, "write the golden files anew")

var suite = flag.Bool("suite", false, "run GoMLX's suite as it is")

// TestSuite runs GoMLX's own tests of backends on programs, in a process of its own, because some of them fail:
// testdata lists what becomes of each, and why it fails or is skipped.
func TestSuite(t *testing.T) {
	if *suite {
		backendtest.RunAll(t, engine{}, nil)
		return
	}
	out, err := exec.Command(os.Args[0], "-test.run=^TestSuite$", "-test.v", "-test.skip="+crashes, "-suite").Output()
	if exit := new(exec.ExitError); !errors.As(err, &exit) || strings.Contains(string(out), "panic: ") {
		t.Fatalf("the suite ended with %v:\n%s", err, out)
	}
	list, used := outcomes(string(out)), map[string]bool{}
	var got strings.Builder
	for _, o := range list {
		if o.result == "FAIL" {
			for _, r := range inapplicable {
				if regexp.MustCompile(r.tests).MatchString(o.name) {
					o.result, o.why = "does not apply", r.why
					used[r.tests] = true
				}
			}
		}
		if o.result == "FAIL" {
			t.Errorf("%s fails: %s", o.name, o.why)
		}
		fmt.Fprintln(&got, strings.TrimSuffix(o.result+": "+o.name+": "+o.why, ": "))
	}
	for _, r := range inapplicable {
		if !used[r.tests] {
			t.Errorf("no test of %s fails: it does apply", r.tests)
		}
	}
	const file = "testdata/suite.txt"
	if *rewrite {
		if err := os.WriteFile(file, []byte(got.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if want, err := os.ReadFile(file); err != nil || string(want) != got.String() {
		t.Errorf("%v, the outcomes differ from %s (-rewrite):\n%s", err, file, got.String())
	}
}

// outcome is what became of a test that has none of its own below it.
type outcome struct{ name, result, why string }

func outcomes(log string) (list []outcome) {
	said := map[string]string{} // the first line of each test
	var running string
	parents := map[string]bool{}
	for line := range strings.Lines(log) {
		line = strings.TrimSpace(line)
		words := strings.Fields(line)
		switch {
		case len(words) == 0:
		case words[0] == "===":
			running = words[len(words)-1]
			parents[path.Dir(running)] = true
		case words[0] == "---" && len(words) > 2:
			name := words[2]
			if result := strings.TrimSuffix(words[1], ":"); !parents[name] {
				list = append(list, outcome{strings.TrimPrefix(name, "TestSuite/"), result, ""})
				if result != "PASS" {
					list[len(list)-1].why = said[name]
				}
			}
		case said[running] == "":
			_, said[running], _ = strings.Cut(line, ": ")
		}
	}
	return list
}
