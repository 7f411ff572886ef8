package device

import (
	"fmt"
	"strings"

	"github.com/starling-network/starling/compute/lower"
	"github.com/starling-network/starling/compute/program"
	"github.com/starling-network/starling/compute/tensor"
)

// typeOf is the type in OpenCL C that holds elements of a type.
func typeOf(d tensor.DType) string {
	switch d {
	case tensor.Float32:
		return "float"
	case tensor.Float16, tensor.BFloat16:
		return "ushort"
	case tensor.Int8:
		return "char"
	case tensor.Int32:
		return "int"
	case tensor.Int64:
		return "long"
	case tensor.Uint32:
		return "uint"
	}
	return "uchar"
}

// functions of numbers.cl, by kinds of operands that are float32.
var functions = map[program.Kind]string{
	program.Neg: "neg_", program.Abs: "abs_", program.Sign: "sign_", program.Max: "max_", program.Min: "min_",
	program.Exp: "exp_", program.Log: "log_", program.Tanh: "tanh_", program.Erf: "erf_", program.Logistic: "logistic_",
	program.Sqrt: "sqrt", program.Rsqrt: "rsqrt_", program.Sin: "sin_", program.Cos: "cos_", program.Floor: "floor",
	program.Ceil: "ceil", program.Round: "rint", program.Pow: "pow_", program.Gelu: "gelu_",
	program.GeluGrad: "gelu_grad_", program.Silu: "silu_", program.SiluGrad: "silu_grad_",
	program.AdamM: "adam_m_", program.AdamV: "adam_v_", program.AdamP: "adam_p_", program.Quantize: "quantize_",
}

// signs of C, by kinds of operands that are float32.
var signs = map[program.Kind]string{program.Add: "+", program.Sub: "-", program.Mul: "*", program.Div: "/"}

// relations are comparisons, of all types.
var relations = map[program.Kind]string{
	program.Equal: "==", program.NotEqual: "!=", program.Less: "<", program.LessEqual: "<=", program.Greater: ">",
	program.GreaterEqual: ">=",
}

// integers are the beginnings of the functions of numbers.cl, by kinds of operands that are integers.
var integers = map[program.Kind]string{
	program.Neg: "neg_", program.Abs: "abs_", program.Sign: "sign_", program.Add: "add_", program.Sub: "sub_",
	program.Mul: "mul_", program.Div: "div_", program.Max: "max_", program.Min: "min_",
}

// expression is an elementwise operator in OpenCL C, from operands of a type, the first of which counts, to a type.
func expression(op *lower.GroupOp, from, to tensor.DType, in []string) string {
	switch op.Kind {
	case program.Identity:
		return in[0]
	case program.Convert:
		return conversion(from, to, in[0])
	case program.Not:
		return fmt.Sprintf("(uchar)(%s == 0)", in[0])
	case program.And:
		return fmt.Sprintf("(uchar)(%s != 0 && %s != 0)", in[0], in[1])
	case program.Or:
		return fmt.Sprintf("(uchar)((%s | %s) != 0)", in[0], in[1])
	case program.Where:
		return fmt.Sprintf("%s != 0 ? %s : %s", in[0], in[1], in[2])
	case program.Dequantize:
		return fmt.Sprintf("(float)%s * %s", in[0], in[1])
	}
	if sign, ok := relations[op.Kind]; ok {
		return fmt.Sprintf("(uchar)(%s %s %s)", in[0], sign, in[1])
	}
	if from != tensor.Float32 {
		return fmt.Sprintf("%s%s(%s)", integers[op.Kind], typeOf(from), strings.Join(in, ", "))
	}
	if sign, ok := signs[op.Kind]; ok {
		return fmt.Sprintf("%s %s %s", in[0], sign, in[1])
	}
	for _, bits := range op.Ints { // of Adam
		in = append(in, fmt.Sprintf("as_float(0x%08xu)", uint32(bits)))
	}
	return fmt.Sprintf("%s(%s)", functions[op.Kind], strings.Join(in, ", "))
}

// conversion is a conversion of types: between a half and another type by way of float.
func conversion(from, to tensor.DType, x string) string {
	half := func(d tensor.DType) bool { return d == tensor.Float16 || d == tensor.BFloat16 }
	if from == to {
		return x
	}
	if half(from) {
		x, from = fmt.Sprintf("from_%s(%s)", from, x), tensor.Float32
	}
	switch {
	case to == tensor.Float32:
		return fmt.Sprintf("(float)%s", x)
	case half(to):
		return fmt.Sprintf("to_%s((float)%s)", to, x)
	case to == tensor.Bool:
		return fmt.Sprintf("(uchar)(%s != 0)", x)
	case from == tensor.Float32:
		return fmt.Sprintf("to_%s(%s)", typeOf(to), x)
	}
	return fmt.Sprintf("(%s)%s", typeOf(to), x)
}
