/* Tries one thing that a sandbox shall deny: SandboxProbe ATTEMPT. Says "could", or "could not" and
 * why. Ends with 0 either way; with 2 for an attempt that there is not.
 *
 * Scripts/systemd/tests/16-sandbox has it tried in the sandbox of lockstepd.service, and in the same
 * one without the line that denies it. In C, because most of this is system calls that Swift does not
 * see. Nothing here changes the machine when it is allowed, beyond the service's own namespaces. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/bpf.h>
#include <netinet/in.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/klog.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/personality.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static char in_state[4096];

/* A path in the service's state directory, the one place where it may write. */
static const char *state(const char *name) {
  const char *directory = getenv("STATE_DIRECTORY");
  snprintf(in_state, sizeof in_state, "%s/%s", directory ? directory : "/nowhere", name);
  return in_state;
}

static int create(const char *path, mode_t mode) {
  unlink(path);
  return open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode);
}

static int directory(const char *path) { return opendir(path) ? 0 : -1; }

/* Whether a namespace is the one outside, whose number the test says. */
static int same_namespace(const char *kind, const char *variable) {
  char path[64], text[64] = "";
  snprintf(path, sizeof path, "/proc/self/ns/%s", kind);
  if (readlink(path, text, sizeof text - 1) < 0) return -1;
  const char *outside = getenv(variable);
  errno = EXDEV;
  return outside && strcmp(text, outside) == 0 ? 0 : -1;
}

static int root(void) { errno = EPERM; return geteuid() == 0 ? 0 : -1; }
static int new_privileges(void) {
  errno = EPERM;
  return prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) == 0 ? 0 : -1;
}
static int capability(void) {
  errno = EPERM;
  return prctl(PR_CAPBSET_READ, 1 /* CAP_DAC_OVERRIDE */, 0, 0, 0) == 1 ? 0 : -1;
}
static int write_system(void) { return create("/etc/sandbox-probe", 0600); }
static int read_home(void) { return directory("/home"); }
static int see_tmp(void) { return access("/tmp/sandbox-marker", F_OK); }
static int see_device(void) { return access("/dev/sandbox-null", F_OK); }
static int open_device(void) { return open("/dev/sandbox-kmsg", O_RDONLY | O_NONBLOCK); }
static int network(void) { return same_namespace("net", "OUTSIDE_NET"); }
static int ipc(void) { return same_namespace("ipc", "OUTSIDE_IPC"); }
static int mounts(void) { return same_namespace("mnt", "OUTSIDE_MNT"); }
static int host_name(void) { return sethostname("sandbox", 7); }
static int clock_set(void) {
  /* A time that cannot be, so that a kernel that lets us set it refuses it for that reason. */
  struct timespec impossible = {.tv_nsec = 2000000000};
  /* Not by the C library, which would look at it, too. */
  long status = syscall(SYS_clock_settime, CLOCK_REALTIME, &impossible);
  return status < 0 && errno == EINVAL ? 0 : -1;
}
static int tunable(void) { return create("/sys/power/sandbox-probe", 0600); }
static int modules(void) { return directory("/usr/lib/modules"); }
static int kernel_log(void) { char text[16]; return klogctl(3, text, sizeof text); }
static int control_groups(void) { return mkdir("/sys/fs/cgroup/sandbox-probe", 0700); }
static int processes(void) { return access("/proc/1/stat", F_OK); }
static int proc_files(void) { return access("/proc/meminfo", R_OK); }
static int inet(void) { return socket(AF_INET, SOCK_DGRAM, 0); }
static int netlink(void) { return socket(AF_NETLINK, SOCK_RAW, 0); }
static int packet(void) {
  int s = socket(AF_INET, SOCK_DGRAM, 0);
  struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(9)};
  to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return s < 0 ? -1 : (int)sendto(s, "x", 1, 0, (struct sockaddr *)&to, sizeof to);
}
static int user_namespace(void) { return unshare(CLONE_NEWUSER); }
static int realtime(void) {
  struct sched_param parameters = {.sched_priority = 1};
  return sched_setscheduler(0, SCHED_FIFO, &parameters);
}
static int setuid_file(void) {
  int file = create(state("setuid"), 0700);
  return file < 0 ? -1 : fchmod(file, 04700);
}
static int open_mode(void) {
  struct stat status;
  int file = create(state("mode"), 0666);
  if (file < 0 || fstat(file, &status) < 0) return -1;
  errno = EPERM;
  return status.st_mode & 077 ? 0 : -1;
}
static int change_personality(void) { return personality(ADDR_NO_RANDOMIZE); }
static int write_execute(void) {
  void *page = mmap(0, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  return page == MAP_FAILED ? -1 : 0;
}
static int foreign_call(void) {
#if defined(__x86_64__)
  long result;
  __asm__ volatile("int $0x80" : "=a"(result) : "a"(20) : "memory", "r8", "r9", "r10", "r11");
  if (result > 0) return 0;
  errno = (int)-result;
#else
  errno = ENOSYS;
#endif
  return -1;
}
static int change_root(void) { return chroot("/"); }
static int mount_something(void) {
  mkdir(state("mount"), 0700);
  return mount("tmpfs", state("mount"), "tmpfs", 0, 0);
}
static int program_kernel(void) {
  union bpf_attr map = {.map_type = BPF_MAP_TYPE_ARRAY, .key_size = 4, .value_size = 4,
                        .max_entries = 1};
  return (int)syscall(SYS_bpf, BPF_MAP_CREATE, &map, sizeof map);
}
/* A lower one, for work beside the loop. */
static int priority(void) { return setpriority(PRIO_PROCESS, 0, 5); }
static int affinity(void) {
  cpu_set_t processors;
  CPU_ZERO(&processors);
  return sched_getaffinity(0, sizeof processors, &processors) != 0
             ? -1
             : sched_setaffinity(0, sizeof processors, &processors);
}
static int io_uring(void) {
  char parameters[256] = "";
  return (int)syscall(425 /* io_uring_setup */, 1, parameters);
}
static int keys(void) {
  /* A new keyring of the process. */
  return (int)syscall(SYS_keyctl, 1 /* KEYCTL_JOIN_SESSION_KEYRING */, 0, 0, 0, 0);
}
/* Run a program and say whether it began: it ends by itself. */
static int run(const char *path, char *const arguments[]) {
  int status, ends[2], reason = 0;
  if (pipe2(ends, O_CLOEXEC) < 0) return -1;
  pid_t child = fork();
  if (child == 0) {
    /* What it says is no answer. */
    dup2(open("/dev/null", O_WRONLY), STDOUT_FILENO);
    execv(path, arguments);
    reason = errno;
    if (write(ends[1], &reason, sizeof reason) < 0) _exit(2);
    _exit(1);
  }
  close(ends[1]);
  if (child < 0 || waitpid(child, &status, 0) < 0) return -1;
  if (read(ends[0], &reason, sizeof reason) <= 0) return 0;
  errno = reason;
  return -1;
}
static int other_program(void) {
  char *arguments[] = {"true", 0};
  return run("/bin/true", arguments);
}
/* A copy of this program, in the state directory. */
static const char *copy_of_self(void) {
  char bytes[1 << 16];
  ssize_t count;
  int from = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
  int to = create(state("program"), 0700);
  while ((count = read(from, bytes, sizeof bytes)) > 0)
    if (write(to, bytes, (size_t)count) != count) break;
  close(from);
  close(to);
  return state("program");
}
static int state_program(void) {
  char *arguments[] = {"probe", "write-state", 0};
  return run(copy_of_self(), arguments);
}
static int state_code(void) {
  int file = open(copy_of_self(), O_RDONLY | O_CLOEXEC);
  return mmap(0, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, file, 0) == MAP_FAILED ? -1 : 0;
}
static int bus(void) {
  struct sockaddr_un to = {.sun_family = AF_UNIX, .sun_path = "/run/dbus/system_bus_socket"};
  int s = socket(AF_UNIX, SOCK_STREAM, 0);
  if (s < 0) return -1;
  if (connect(s, (struct sockaddr *)&to, sizeof to) == 0) return 0;
  /* Nobody listens there, and so it was reached. */
  return errno == ECONNREFUSED ? 0 : -1;
}
static int debug(void) { return (int)ptrace(PTRACE_TRACEME, 0, 0, 0); }
/* The other way around: what the daemon must be able to do. */
static int write_state(void) { return create(state("written"), 0600); }
static int sealed_memory(void) { return memfd_create("probe", MFD_ALLOW_SEALING | MFD_CLOEXEC); }

static const struct {
  const char *name;
  int (*attempt)(void);
} attempts[] = {
    {"root", root}, {"new-privileges", new_privileges}, {"capability", capability},
    {"write-system", write_system}, {"read-home", read_home}, {"see-tmp", see_tmp},
    {"see-device", see_device}, {"open-device", open_device}, {"network", network}, {"ipc", ipc},
    {"mounts", mounts}, {"hostname", host_name}, {"clock", clock_set}, {"tunable", tunable},
    {"modules", modules}, {"kernel-log", kernel_log}, {"control-groups", control_groups},
    {"processes", processes}, {"proc-files", proc_files}, {"inet", inet}, {"netlink", netlink},
    {"packet", packet}, {"user-namespace", user_namespace}, {"realtime", realtime},
    {"setuid-file", setuid_file}, {"open-mode", open_mode}, {"personality", change_personality},
    {"write-execute", write_execute}, {"foreign-call", foreign_call},
    {"change-root", change_root}, {"mount", mount_something}, {"program-kernel", program_kernel},
    {"priority", priority}, {"affinity", affinity}, {"io-uring", io_uring}, {"debug", debug},
    {"keys", keys}, {"other-program", other_program}, {"state-program", state_program},
    {"state-code", state_code}, {"bus", bus},
    {"write-state", write_state}, {"sealed-memory", sealed_memory},
};

/* A system call that ends the process instead of failing was denied, too. */
static void killed(int number) {
  (void)number;
  static const char text[] = "could not: killed\n";
  ssize_t count = write(STDOUT_FILENO, text, sizeof text - 1);
  _exit(count < 0);
}

int main(int count, char **arguments) {
  signal(SIGSYS, killed);
  signal(SIGSEGV, killed);
  for (size_t i = 0; count == 2 && i < sizeof attempts / sizeof *attempts; i++) {
    if (strcmp(attempts[i].name, arguments[1]) != 0) continue;
    errno = 0;
    if (attempts[i].attempt() >= 0) puts("could");
    else printf("could not: %s\n", strerror(errno));
    return 0;
  }
  for (size_t i = 0; i < sizeof attempts / sizeof *attempts; i++) puts(attempts[i].name);
  return 2;
}
