// SPDX-License-Identifier: Apache-2.0

// Package logging configures the logs of all programs of the product. The programs have the same flags and keys, and
// log each write to Kubernetes and each event. Reconcilers therefore need no log statements of their own.
// docs/reference/logging.md lists what each level logs.
package logging

import (
	"flag"
	"fmt"
	"io"
	"os"
	"strconv"
	"time"

	"github.com/go-logr/logr"
	"github.com/spf13/pflag"
	"go.uber.org/zap/zapcore"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
)

// The log levels. Errors are logged at every level.
const (
	// Changes is the level of events, and of calls that change something in MAAS. It is meant for on-call engineers.
	Changes = 0
	// Writes is the level of writes to Kubernetes.
	Writes = 1
	// Reads is the level of reads from MAAS.
	Reads = 2
	// MaxLevel is the maximum level. At 5, the queue of controller-runtime (0.24, kubernetes-sigs/controller-runtime#3588)
	// logs its items while they change, which can crash the program. Above 5, the Kubernetes client logs what it sends,
	// including Secrets.
	MaxLevel = 4
)

// Environment variables with the defaults of the flags. Operators pass them to the programs that they run.
const (
	LevelEnv  = "HYPERSHIFT_LOG_LEVEL"
	FormatEnv = "HYPERSHIFT_LOG_FORMAT"
)

// PassedEnv lists the environment variables that an operator passes to the programs that it runs, if they are set.
var PassedEnv = []string{LevelEnv, FormatEnv}

const (
	formatJSON    = "json"
	formatConsole = "console"
)

// Options holds the values of a program's log flags.
type Options struct {
	level  int
	format string
}

// AddFlags adds --log-level, with the aliases -v and --v, and --log-format.
func (o *Options) AddFlags(flags *pflag.FlagSet) {
	level, err := strconv.Atoi(os.Getenv(LevelEnv))
	if err != nil {
		level = Changes // The variable is not set or not a number.
	}
	format := os.Getenv(FormatEnv)
	if format == "" {
		format = formatJSON
	}
	flags.IntVar(&o.level, "log-level", level, fmt.Sprintf("How much is logged: 0 changes, 1 each write to Kubernetes, 2 each read from MAAS, "+
		"up to %d for what the libraries say; more counts as %[1]d. [%s]", MaxLevel, LevelEnv))
	flags.IntVarP(&o.level, "v", "v", level, "The same as --log-level.")
	flags.StringVar(&o.format, "log-format", format, fmt.Sprintf("How lines look: %s or %s. [%s]", formatJSON, formatConsole, FormatEnv))
}

// Install configures the log of this process from the flags, including those of the Kubernetes client and
// controller-runtime. It writes to standard error.
func (o *Options) Install() error { return o.InstallTo(os.Stderr) }

// InstallTo configures the log of this process as Install does, and writes to w.
func (o *Options) InstallTo(w io.Writer) error {
	logger, err := o.logger(w)
	if err != nil {
		return err
	}
	ctrl.SetLogger(logger)
	klog.SetLoggerWithOptions(logger, klog.ContextualLogger(true))
	// Code that does not use a logger checks klog's own flag.
	flags := flag.NewFlagSet("klog", flag.ContinueOnError)
	klog.InitFlags(flags)
	return flags.Set("v", strconv.Itoa(o.clamped()))
}

func (o *Options) logger(w io.Writer) (logr.Logger, error) {
	encode := zap.JSONEncoder
	switch o.format {
	case formatJSON, "":
	case formatConsole:
		encode = zap.ConsoleEncoder
	default:
		return logr.Logger{}, fmt.Errorf("--log-format is %q: use %s or %s", o.format, formatJSON, formatConsole)
	}
	level := zapcore.Level(-o.clamped()) //nolint:gosec // -MaxLevel to 0
	return zap.New(zap.WriteTo(lineWriter{w}), zap.Level(level), zap.StacktraceLevel(zapcore.PanicLevel), encode(readable)), nil
}

func (o *Options) clamped() int { return min(max(o.level, Changes), MaxLevel) }

// readable formats times for people, in UTC, and levels with the numbers of the flag.
func readable(config *zapcore.EncoderConfig) {
	config.EncodeLevel = func(level zapcore.Level, encoder zapcore.PrimitiveArrayEncoder) {
		if level < zapcore.InfoLevel {
			encoder.AppendString(fmt.Sprintf("v%d", -level))
			return
		}
		encoder.AppendString(level.String())
	}
	config.EncodeTime = func(at time.Time, encoder zapcore.PrimitiveArrayEncoder) {
		encoder.AppendString(at.UTC().Format("2006-01-02T15:04:05.000Z"))
	}
	config.EncodeDuration = zapcore.StringDurationEncoder
}

// Environment returns the variables of PassedEnv that are set in this process.
func Environment() []corev1.EnvVar {
	var all []corev1.EnvVar
	for _, name := range PassedEnv {
		if value := os.Getenv(name); value != "" {
			all = append(all, corev1.EnvVar{Name: name, Value: value})
		}
	}
	return all
}
