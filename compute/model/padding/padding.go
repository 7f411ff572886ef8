// Package padding is texts of several lengths as rows of tokens of one length: a shorter text is filled up at its end
// with a token that stands for nothing.
package padding

import (
	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/core/graph"
)

// Row is a text as its first tokens, up to length of them, filled up with pad.
func Row(tokens []uint32, length, pad int) []uint32 {
	row := make([]uint32, length)
	for i := copy(row, tokens); i < length; i++ {
		row[i] = uint32(pad)
	}
	return row
}

// Last is the column of the last token of each row of texts [n, length] that is not pad, int32 [n]; 0 if all are. read
// is the texts with tokens of the model alone, of which there are vocab: another one in place of pad where pad is none
// of them.
func Last(texts *graph.Node, pad, vocab int) (read, last *graph.Node) {
	rows, length := texts.Shape().Dimensions[0], texts.Shape().Dimensions[1]
	own := graph.NotEqual(texts, graph.MulScalar(graph.OnesLike(texts), pad))
	if read = texts; pad >= vocab { // it has no embedding, and any token takes its place
		read = graph.Where(own, texts, graph.ZerosLike(texts))
	}
	at := graph.Iota(texts.Graph(), shapes.Make(dtypes.Int32, rows, length), 1)
	return read, graph.ReduceMax(graph.Where(own, at, graph.ZerosLike(at)), -1)
}
