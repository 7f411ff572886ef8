// Package rundir is the folder of a run: the names and formats of its files, the writer and the readers of them. It
// computes nothing that goes into a file.
package rundir
