package cpu

import (
	"math"

	"github.com/starling-network/starling/compute/kernel"
	"github.com/starling-network/starling/compute/kernel/elementary"
	"github.com/starling-network/starling/compute/lower"
	"github.com/starling-network/starling/compute/program"
	"github.com/starling-network/starling/compute/tensor"
)

// A lane computes one elementwise operator on memory: dst from the operands, all of as many elements. dst may be the
// same memory as an operand.
type lane func(dst []byte, in [][]byte)

func unary[D, S tensor.Element](f func(dst []D, x []S)) lane {
	return func(dst []byte, in [][]byte) { f(tensor.As[D](dst), tensor.As[S](in[0])) }
}

func binary[D, S tensor.Element](f func(dst []D, x, y []S)) lane {
	return func(dst []byte, in [][]byte) { f(tensor.As[D](dst), tensor.As[S](in[0]), tensor.As[S](in[1])) }
}

// swapped is binary with the operands exchanged.
func swapped[D, S tensor.Element](f func(dst []D, x, y []S)) lane {
	return func(dst []byte, in [][]byte) { f(tensor.As[D](dst), tensor.As[S](in[1]), tensor.As[S](in[0])) }
}

func copyLane(dst []byte, in [][]byte) { copy(dst, in[0]) }

// laneOf returns the lane of an elementwise operator from operands of a type, the first of which counts, to a type.
func laneOf(op *lower.GroupOp, from, to tensor.DType, m elementary.Math) lane {
	switch {
	case op.Kind == program.Identity:
		return copyLane
	case op.Kind == program.Convert:
		return convertLane(from, to)
	case op.Kind == program.Not:
		return unary(kernel.Not)
	case op.Kind == program.And:
		return binary(kernel.And)
	case op.Kind == program.Or:
		return binary(kernel.Or)
	case op.Kind == program.Quantize:
		return binary(kernel.QuantizeTo)
	case op.Kind == program.Dequantize:
		return dequantize
	case op.Kind == program.Where:
		return whereLane(to.Size())
	case op.Kind >= program.AdamM && op.Kind <= program.AdamP:
		return adamLane(op, m.Path)
	}
	switch from {
	case tensor.Float32:
		if l := floatLane(op.Kind, m); l != nil {
			return l
		}
		return numberLane[float32](op.Kind)
	case tensor.Int8:
		return intLane[int8](op.Kind)
	case tensor.Int32:
		return intLane[int32](op.Kind)
	case tensor.Int64:
		return intLane[int64](op.Kind)
	case tensor.Uint8, tensor.Bool: // of the kinds left, Bool has Equal and NotEqual
		return intLane[uint8](op.Kind)
	case tensor.Uint32:
		return intLane[uint32](op.Kind)
	}
	return nil
}

func floatLane(k program.Kind, m elementary.Math) lane {
	path := m.Path
	switch k {
	case program.Exp:
		return unary(m.Exp)
	case program.Log:
		return unary(m.Log)
	case program.Tanh:
		return unary(m.Tanh)
	case program.Erf:
		return unary(m.Erf)
	case program.Logistic:
		return unary(m.Logistic)
	case program.Sqrt:
		return unary(path.Sqrt)
	case program.Rsqrt:
		return unary(m.Rsqrt)
	case program.Sin:
		return unary(m.Sin)
	case program.Cos:
		return unary(m.Cos)
	case program.Floor:
		return unary(kernel.Map(kernel.Floor))
	case program.Ceil:
		return unary(kernel.Map(kernel.Ceil))
	case program.Round:
		return unary(kernel.Map(kernel.Round))
	case program.Abs:
		return unary(kernel.AbsFloat)
	case program.Add:
		return binary(path.Add)
	case program.Sub:
		return binary(path.Sub)
	case program.Mul:
		return binary(path.Mul)
	case program.Div:
		return binary(path.Div)
	case program.Max:
		return binary(path.Max)
	case program.Min:
		return binary(path.Min)
	case program.Pow:
		return binary(m.Pow)
	case program.Gelu:
		return unary(m.Gelu)
	case program.GeluGrad:
		return binary(m.GeluGrad)
	case program.Silu:
		return unary(m.Silu)
	case program.SiluGrad:
		return binary(m.SiluGrad)
	}
	return nil
}

func intLane[T kernel.Integer](k program.Kind) lane {
	switch k {
	case program.Abs:
		return unary(kernel.AbsInt[T])
	case program.Add:
		return binary(kernel.Add[T])
	case program.Sub:
		return binary(kernel.Sub[T])
	case program.Mul:
		return binary(kernel.Mul[T])
	case program.Div:
		return binary(kernel.DivInt[T])
	case program.Max:
		return binary(kernel.Max[T])
	case program.Min:
		return binary(kernel.Min[T])
	}
	return numberLane[T](k)
}

func numberLane[T kernel.Number](k program.Kind) lane {
	switch k {
	case program.Neg:
		return unary(kernel.Neg[T])
	case program.Sign:
		return unary(kernel.Sign[T])
	case program.Equal:
		return binary(kernel.Equal[T])
	case program.NotEqual:
		return binary(kernel.NotEqual[T])
	case program.Less:
		return binary(kernel.Less[T])
	case program.LessEqual:
		return binary(kernel.LessEqual[T])
	case program.Greater:
		return swapped(kernel.Less[T])
	case program.GreaterEqual:
		return swapped(kernel.LessEqual[T])
	}
	return nil
}

func convertLane(from, to tensor.DType) lane {
	if from == to {
		return copyLane
	}
	switch from {
	case tensor.Float32:
		return fromFloat(to)
	case tensor.Float16:
		return fromHalf(kernel.Map(kernel.FromFloat16), to)
	case tensor.BFloat16:
		return fromHalf(kernel.Map(kernel.FromBFloat16), to)
	case tensor.Int8:
		return fromInt[int8](to)
	case tensor.Int32:
		return fromInt[int32](to)
	case tensor.Int64:
		return fromInt[int64](to)
	case tensor.Uint8, tensor.Bool: // Bool bytes are 0 or 1
		return fromInt[uint8](to)
	}
	return fromInt[uint32](to)
}

func fromFloat(to tensor.DType) lane {
	switch to {
	case tensor.Float16:
		return unary(kernel.Map(kernel.ToFloat16))
	case tensor.BFloat16:
		return unary(kernel.Map(kernel.ToBFloat16))
	case tensor.Int8:
		return unary(kernel.FloatTo[int8])
	case tensor.Int32:
		return unary(kernel.FloatTo[int32])
	case tensor.Int64:
		return unary(kernel.FloatTo[int64])
	case tensor.Uint8:
		return unary(kernel.FloatTo[uint8])
	case tensor.Uint32:
		return unary(kernel.FloatTo[uint32])
	}
	return unary(kernel.Truth[float32])
}

func fromInt[S kernel.Integer](to tensor.DType) lane {
	switch to {
	case tensor.Float32:
		return unary(kernel.Convert[float32, S])
	case tensor.Float16, tensor.BFloat16:
		return toHalf(kernel.Convert[float32, S], to)
	case tensor.Int8:
		return unary(kernel.Convert[int8, S])
	case tensor.Int32:
		return unary(kernel.Convert[int32, S])
	case tensor.Int64:
		return unary(kernel.Convert[int64, S])
	case tensor.Uint8:
		return unary(kernel.Convert[uint8, S])
	case tensor.Uint32:
		return unary(kernel.Convert[uint32, S])
	}
	return unary(kernel.Truth[S])
}

// fromHalf converts what widen turns into float32.
func fromHalf(widen func(dst []float32, x []uint16), to tensor.DType) lane {
	switch to {
	case tensor.Float32:
		return unary(widen)
	case tensor.Float16, tensor.BFloat16:
		return toHalf(widen, to)
	case tensor.Int8:
		return unary(kernel.ByFloat(widen, kernel.FloatTo[int8]))
	case tensor.Int32:
		return unary(kernel.ByFloat(widen, kernel.FloatTo[int32]))
	case tensor.Int64:
		return unary(kernel.ByFloat(widen, kernel.FloatTo[int64]))
	case tensor.Uint8:
		return unary(kernel.ByFloat(widen, kernel.FloatTo[uint8]))
	case tensor.Uint32:
		return unary(kernel.ByFloat(widen, kernel.FloatTo[uint32]))
	}
	return unary(kernel.ByFloat(widen, kernel.Truth[float32]))
}

func toHalf[S tensor.Element](widen func(dst []float32, x []S), to tensor.DType) lane {
	if to == tensor.Float16 {
		return unary(kernel.ByFloat(widen, kernel.Map(kernel.ToFloat16)))
	}
	return unary(kernel.ByFloat(widen, kernel.Map(kernel.ToBFloat16)))
}

func dequantize(dst []byte, in [][]byte) {
	kernel.DequantizeTo(tensor.As[float32](dst), tensor.As[int8](in[0]), tensor.As[float32](in[1]))
}

func whereLane(size int) lane {
	switch size {
	case 1:
		return where[uint8]
	case 2:
		return where[uint16]
	case 4:
		return where[uint32]
	}
	return where[int64]
}

func where[T tensor.Element](dst []byte, in [][]byte) {
	kernel.Where(tensor.As[T](dst), in[0], tensor.As[T](in[1]), tensor.As[T](in[2]))
}

// adamLane takes tensors, then whole scalars.
func adamLane(op *lower.GroupOp, path kernel.Path) lane {
	f := func(b []byte) []float32 { return tensor.As[float32](b) }
	attribute := func(i int) float32 { return math.Float32frombits(uint32(op.Ints[i])) }
	a := attribute(0)
	switch op.Kind {
	case program.AdamM:
		return func(dst []byte, in [][]byte) { path.AdamM(f(dst), f(in[0]), f(in[1]), f(in[2])[0], a) }
	case program.AdamV:
		return func(dst []byte, in [][]byte) { path.AdamV(f(dst), f(in[0]), f(in[1]), f(in[2])[0], a) }
	}
	decay := attribute(1)
	return func(dst []byte, in [][]byte) {
		path.AdamP(f(dst), f(in[0]), f(in[1]), f(in[2]), f(in[3])[0], f(in[4])[0], f(in[5])[0], a, decay)
	}
}
