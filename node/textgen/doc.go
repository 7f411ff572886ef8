// Package textgen continues texts with a trained model of a folder. It trains nothing.
package textgen
