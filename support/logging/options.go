// SPDX-License-Identifier: Apache-2.0

// Package logging is how every program of the product logs: the same flags, the same keys, and a line for each write to
// Kubernetes and each event, so that no reconciler has to log by itself. docs/reference/logging.md says what is logged at which level.
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

// What is logged at which level. Errors are logged at every level.
const (
	// Changes are what a person on call wants to know: events, and calls that change something in MAAS.
	Changes = 0
	// Writes are the writes to Kubernetes.
	Writes = 1
	// Reads are what is read from MAAS.
	Reads = 2
	// MaxLevel is as far as it goes. At 5, the queue of controller-runtime (0.24, kubernetes-sigs/controller-runtime#3588) logs its items
	// while they change, which can crash the program; above 5, the Kubernetes client prints what it sends, Secrets included.
	MaxLevel = 4
)

// Environment variables that hold the defaults of the flags; operators pass them on to the programs that they run.
const (
	LevelEnv  = "HYPERSHIFT_LOG_LEVEL"
	FormatEnv = "HYPERSHIFT_LOG_FORMAT"
)

// PassedEnv are the variables that an operator gives to the programs that it runs, where it has them itself.
var PassedEnv = []string{LevelEnv, FormatEnv}

const (
	formatJSON    = "json"
	formatConsole = "console"
)

// Options are the flags of a program's log.
type Options struct {
	level  int
	format string
}

// AddFlags adds --log-level, which may be written -v or --v as well, and --log-format.
func (o *Options) AddFlags(flags *pflag.FlagSet) {
	level, err := strconv.Atoi(os.Getenv(LevelEnv))
	if err != nil {
		level = Changes // Without the variable, or with nonsense in it.
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

// Install makes the log of this process what the flags say, that of the Kubernetes client and of controller-runtime included.
func (o *Options) Install() error { return o.InstallTo(os.Stderr) }

// InstallTo is Install with lines that go to w.
func (o *Options) InstallTo(w io.Writer) error {
	logger, err := o.logger(w)
	if err != nil {
		return err
	}
	ctrl.SetLogger(logger)
	klog.SetLoggerWithOptions(logger, klog.ContextualLogger(true))
	// What does not know loggers asks klog's own flag whether to log.
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
	return zap.New(zap.WriteTo(w), zap.Level(level), zap.StacktraceLevel(zapcore.PanicLevel), encode(readable)), nil
}

func (o *Options) clamped() int { return min(max(o.level, Changes), MaxLevel) }

// readable writes times as people read them, in UTC, and levels as the flag counts them.
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

// Environment is PassedEnv where this process has it.
func Environment() []corev1.EnvVar {
	var all []corev1.EnvVar
	for _, name := range PassedEnv {
		if value := os.Getenv(name); value != "" {
			all = append(all, corev1.EnvVar{Name: name, Value: value})
		}
	}
	return all
}
