// SPDX-License-Identifier: Apache-2.0

package etcd

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	dto "github.com/prometheus/client_model/go"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/support/condition"
)

const (
	// fsyncFamily is etcd's histogram of the time, in seconds, until the write-ahead log is on the disk.
	fsyncFamily = "etcd_disk_wal_fsync_duration_seconds"
	// startFamily is etcd's metric for the start time of a member's process. The histogram counts from that time.
	startFamily = "process_start_time_seconds"
	// diskWindow is the duration of one measurement of fsyncs, and enoughSyncs the minimum number of fsyncs in it.
	diskWindow  = 5 * time.Minute
	enoughSyncs = 100
	// tolerable is the longest 99th percentile of fsyncs that etcd's documentation calls fast enough. A slow disk counts
	// as fast again when it was below relieved, a bucket bound of etcd's histogram, in reliefs windows in a row. This
	// keeps a disk at the limit from alternating between fast and slow.
	tolerable = 10 * time.Millisecond
	relieved  = 8 * time.Millisecond
	reliefs   = 3
	// restated is the factor by which the latency of a slow disk must change to be reported again.
	restated = 1.5
)

// fsyncs holds the counters of a member since its process started.
type fsyncs struct {
	started float64
	total   uint64
	// upTo maps a bound in seconds to the number of fsyncs that took at most that long.
	upTo map[float64]uint64
}

// disk is the state of a member's disk. The zero value has no measurement.
type disk struct {
	since  time.Time
	before *fsyncs
	// p99 is the 99th percentile of the last window; zero before the first window has ended.
	p99 time.Duration
	// said is the latency that is reported; zero if the disk is fast.
	said time.Duration
	// fast is the number of consecutive windows in which a disk that is reported as slow was fast.
	fast int
}

// readFsyncs reads the counters from a member's metrics. It returns nil if they have no histogram of etcd.
func readFsyncs(families map[string]*dto.MetricFamily) *fsyncs {
	if len(families[fsyncFamily].GetMetric()) == 0 {
		return nil
	}
	histogram := families[fsyncFamily].GetMetric()[0].GetHistogram()
	read := &fsyncs{total: histogram.GetSampleCount(), upTo: map[float64]uint64{}}
	for _, bucket := range histogram.GetBucket() {
		if !math.IsInf(bucket.GetUpperBound(), 1) {
			read.upTo[bucket.GetUpperBound()] = bucket.GetCumulativeCount()
		}
	}
	if started := families[startFamily].GetMetric(); len(started) > 0 {
		read.started = started[0].GetGauge().GetValue()
	}
	return read
}

// due reports whether the disk must be measured again.
func (d *disk) due(now time.Time) bool { return d.before == nil || now.Sub(d.since) >= diskWindow }

// take ends a window, unless it has too few fsyncs. A restart of the member begins a new window.
func (d *disk) take(now time.Time, read *fsyncs) {
	if d.before == nil || d.before.started != read.started {
		d.since, d.before = now, read
		return
	}
	p99, enough := read.percentile(0.99, d.before)
	if !enough {
		return
	}
	d.since, d.before, d.p99 = now, read, p99
	d.evaluate()
}

func (d *disk) evaluate() {
	switch {
	case d.said == 0 && d.p99 >= tolerable:
		d.said, d.fast = legible(d.p99), 0
	case d.said == 0:
	case d.p99 < relieved:
		if d.fast++; d.fast >= reliefs {
			d.said = 0
		}
	default:
		d.fast = 0
		if ratio := float64(d.p99) / float64(d.said); d.p99 >= tolerable && (ratio > restated || ratio < 1/restated) {
			d.said = legible(d.p99)
		}
	}
}

// percentile returns the duration that the given share of the fsyncs since before did not exceed. It interpolates
// linearly between two bucket bounds. It also reports whether there were enough fsyncs.
func (f *fsyncs) percentile(share float64, before *fsyncs) (time.Duration, bool) {
	if f.total < before.total+enoughSyncs {
		return 0, false
	}
	rank := share * float64(f.total-before.total)
	lower, below := 0.0, 0.0
	for _, upper := range slices.Sorted(maps.Keys(f.upTo)) {
		count := float64(f.upTo[upper] - before.upTo[upper])
		if count >= rank && count > below {
			return seconds(lower + (upper-lower)*(rank-below)/(count-below)), true
		}
		lower, below = upper, count
	}
	return seconds(lower), true
}

func seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }

// legible rounds a duration for messages.
func legible(d time.Duration) time.Duration {
	if d < time.Second {
		return d.Round(time.Millisecond)
	}
	return d.Round(100 * time.Millisecond)
}

// diskFast returns a condition that names the slow disks. There is no condition before all disks have been measured,
// unless one is slow.
func diskFast(pods []string, disks map[string]*disk) (metav1.Condition, bool) {
	t := string(hyperv1.EtcdDiskFast)
	var slow []string
	known := true
	for _, pod := range pods {
		d := disks[pod]
		if d == nil || d.p99 == 0 {
			known = false
			continue
		}
		if d.said > 0 {
			slow = append(slow, fmt.Sprintf("%d ms on %s", d.said.Milliseconds(), pod))
		}
	}
	if len(slow) > 0 {
		return condition.False(t, hyperv1.EtcdDiskSlowReason, fmt.Sprintf("The disk is too slow for etcd: p99 of fsync is %s, must be < %d ms",
			strings.Join(slow, ", "), tolerable.Milliseconds())), true
	}
	return condition.True(t, hyperv1.AsExpectedReason, ""), known
}
