//go:build !amd64

package canon

var fastest = lanes{width: 1}
