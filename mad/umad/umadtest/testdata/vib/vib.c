// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * vib: virtual InfiniBand adapters for tests, each of one port with the queue
 * pairs 0 and 1 and nothing more. What the kernel posts there is read from
 * /dev/vib; what is written to it is received there. So a program is the
 * fabric, and ib_core, ib_mad and ib_umad above are the real ones.
 *
 * An adapter begins with the first port record that is written to an open
 * /dev/vib, and is gone when that is closed.
 */
#include <linux/fs.h>
#include <linux/kfifo.h>
#include <linux/miscdevice.h>
#include <linux/module.h>
#include <linux/poll.h>
#include <linux/slab.h>
#include <linux/uaccess.h>
#include <linux/version.h>
#include <rdma/ib_mad.h>
#include <rdma/ib_verbs.h>

enum { VIB_MAD, VIB_PORT };	/* kinds of records */

/* A datagram, in either direction; in host order, but for the MAD. */
struct vib_mad {
	u32 kind;
	u32 qp;			/* it goes to; from there too */
	u16 dlid, slid;
	u8 sl, path_bits;
	u16 pkey_index;
	u8 mad[IB_MGMT_MAD_SIZE];
};

/* What the port is to be from now on. */
struct vib_port {
	u32 kind, reserved;
	u64 prefix, node_guid, guid;	/* GUIDs, once given, stay */
	u16 lid, sm_lid;
	u8 lmc, sm_sl, state, phys_state;
};

struct vib_cq {
	struct ib_cq ib;
	DECLARE_KFIFO_PTR(done, struct ib_wc);
	bool armed;
};

struct vib_receive {
	struct ib_cqe *cqe;
	struct ib_sge sge;
};

struct vib_qp {
	struct ib_qp ib;
	DECLARE_KFIFO_PTR(posted, struct vib_receive);
};

struct vib_pd {
	struct ib_pd ib;
};

struct vib_ah {
	struct ib_ah ib;
	struct rdma_ah_attr attr;
};

struct vib {
	struct ib_device ib;
	struct vib_port port;
	u32 sm;			/* IB_PORT_SM where a subnet manager runs */
	struct vib_qp *qp[2];
	/* To be read. What does not fit is lost, as in a fabric. */
	DECLARE_KFIFO_PTR(out, struct vib_mad);
	wait_queue_head_t *wait;	/* of the open file */
	spinlock_t lock;	/* guards all queues, and qp */
};

/* An open /dev/vib. */
struct vib_file {
	struct mutex mutex;
	wait_queue_head_t wait;
	struct vib *vib;	/* NULL before the first port record */
};

static struct vib *to_vib(struct ib_device *d) { return container_of(d, struct vib, ib); }
static struct vib_cq *to_cq(struct ib_cq *c) { return container_of(c, struct vib_cq, ib); }
static struct vib_qp *to_qp(struct ib_qp *q) { return container_of(q, struct vib_qp, ib); }
static struct vib_ah *to_ah(struct ib_ah *a) { return container_of(a, struct vib_ah, ib); }

/* complete queues wc; the caller has the lock, and tells cq's owner if true. */
static bool complete_wr(struct ib_cq *cq, const struct ib_wc *wc)
{
	struct vib_cq *c = to_cq(cq);
	bool tell = c->armed;

	kfifo_put(&c->done, *wc);	/* has room for all that can be posted */
	c->armed = false;
	return tell;
}

static void tell(struct ib_cq *cq) { cq->comp_handler(cq, cq->cq_context); }

static int vib_post_send(struct ib_qp *qp, const struct ib_send_wr *wr,
			 const struct ib_send_wr **bad)
{
	struct vib *v = to_vib(qp->device);

	for (; wr; wr = wr->next) {
		const struct ib_ud_wr *ud = ud_wr(wr);
		const struct rdma_ah_attr *ah = &to_ah(ud->ah)->attr;
		struct ib_wc wc = {
			.wr_cqe = wr->wr_cqe, .qp = qp, .port_num = 1,
			.status = IB_WC_SUCCESS, .opcode = IB_WC_SEND,
		};
		struct vib_mad m = {
			.kind = VIB_MAD, .qp = qp->qp_num,
			.dlid = rdma_ah_get_dlid(ah), .sl = rdma_ah_get_sl(ah),
			.path_bits = rdma_ah_get_path_bits(ah), .pkey_index = ud->pkey_index,
		};
		unsigned long flags;
		bool owner;
		int i;

		for (i = 0; i < wr->num_sge; i++) {
			u32 n = min_t(u32, wr->sg_list[i].length, sizeof(m.mad) - wc.byte_len);

			/* Without a dma_device, addresses are those of the kernel. */
			memcpy(m.mad + wc.byte_len, (void *)(uintptr_t)wr->sg_list[i].addr, n);
			wc.byte_len += n;
		}
		m.slid = v->port.lid | m.path_bits;
		spin_lock_irqsave(&v->lock, flags);
		kfifo_put(&v->out, m);
		owner = complete_wr(qp->send_cq, &wc);
		spin_unlock_irqrestore(&v->lock, flags);
		wake_up_interruptible(v->wait);
		if (owner)
			tell(qp->send_cq);
	}
	return 0;
}

static int vib_post_recv(struct ib_qp *qp, const struct ib_recv_wr *wr,
			 const struct ib_recv_wr **bad)
{
	struct vib *v = to_vib(qp->device);
	unsigned long flags;

	spin_lock_irqsave(&v->lock, flags);
	for (; wr; wr = wr->next) {
		struct vib_receive r = { .cqe = wr->wr_cqe, .sge = wr->sg_list[0] };

		if (wr->num_sge != 1 || !kfifo_put(&to_qp(qp)->posted, r)) {
			*bad = wr;
			break;
		}
	}
	spin_unlock_irqrestore(&v->lock, flags);
	return wr ? -ENOMEM : 0;
}

/* deliver has m received. Where nobody has posted a buffer it is lost. */
static int deliver(struct vib *v, const struct vib_mad *m)
{
	struct ib_wc wc = {
		.port_num = 1, .status = IB_WC_SUCCESS, .opcode = IB_WC_RECV,
		.byte_len = sizeof(struct ib_grh) + sizeof(m->mad),
		.src_qp = m->qp, .slid = m->slid, .sl = m->sl,
		.dlid_path_bits = m->path_bits, .pkey_index = m->pkey_index,
	};
	struct vib_receive r;
	struct ib_cq *cq = NULL;
	struct vib_qp *qp;
	unsigned long flags;
	bool owner = false;

	if (m->qp > 1)
		return -EINVAL;
	spin_lock_irqsave(&v->lock, flags);
	qp = v->qp[m->qp];
	if (qp && kfifo_get(&qp->posted, &r) && r.sge.length >= wc.byte_len) {
		memcpy((u8 *)(uintptr_t)r.sge.addr + sizeof(struct ib_grh), m->mad, sizeof(m->mad));
		wc.wr_cqe = r.cqe;
		wc.qp = &qp->ib;
		cq = qp->ib.recv_cq;
		owner = complete_wr(cq, &wc);
	}
	spin_unlock_irqrestore(&v->lock, flags);
	if (owner)
		tell(cq);
	return cq ? 0 : -ENOBUFS;
}

static int vib_poll_cq(struct ib_cq *cq, int n, struct ib_wc *wc)
{
	struct vib *v = to_vib(cq->device);
	unsigned long flags;

	spin_lock_irqsave(&v->lock, flags);
	n = kfifo_out(&to_cq(cq)->done, wc, n);
	spin_unlock_irqrestore(&v->lock, flags);
	return n;
}

static int vib_req_notify_cq(struct ib_cq *cq, enum ib_cq_notify_flags want)
{
	struct vib *v = to_vib(cq->device);
	unsigned long flags;
	bool missed;

	spin_lock_irqsave(&v->lock, flags);
	to_cq(cq)->armed = true;
	missed = (want & IB_CQ_REPORT_MISSED_EVENTS) && !kfifo_is_empty(&to_cq(cq)->done);
	spin_unlock_irqrestore(&v->lock, flags);
	return missed;
}

#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 11, 0)
static int vib_create_cq(struct ib_cq *cq, const struct ib_cq_init_attr *a, struct uverbs_attr_bundle *u)
#else
static int vib_create_cq(struct ib_cq *cq, const struct ib_cq_init_attr *a, struct ib_udata *u)
#endif
{
	cq->cqe = a->cqe;
	return kfifo_alloc(&to_cq(cq)->done, roundup_pow_of_two(a->cqe), GFP_KERNEL);
}

static int vib_destroy_cq(struct ib_cq *cq, struct ib_udata *u)
{
	kfifo_free(&to_cq(cq)->done);
	return 0;
}

static int vib_create_qp(struct ib_qp *qp, struct ib_qp_init_attr *a, struct ib_udata *u)
{
	struct vib *v = to_vib(qp->device);
	int num, err;

	switch (a->qp_type) {
	case IB_QPT_SMI:
		num = 0;
		break;
	case IB_QPT_GSI:
		num = 1;
		break;
	default:
		return -EOPNOTSUPP;
	}
	err = kfifo_alloc(&to_qp(qp)->posted, roundup_pow_of_two(a->cap.max_recv_wr), GFP_KERNEL);
	if (err)
		return err;
	qp->qp_num = num;
	v->qp[num] = to_qp(qp);
	return 0;
}

static int vib_destroy_qp(struct ib_qp *qp, struct ib_udata *u)
{
	struct vib *v = to_vib(qp->device);
	unsigned long flags;

	spin_lock_irqsave(&v->lock, flags);
	v->qp[qp->qp_num] = NULL;
	spin_unlock_irqrestore(&v->lock, flags);
	kfifo_free(&to_qp(qp)->posted);
	return 0;
}

static int vib_create_ah(struct ib_ah *ah, struct rdma_ah_init_attr *a, struct ib_udata *u)
{
	if (rdma_ah_get_ah_flags(a->ah_attr) & IB_AH_GRH)
		return -EOPNOTSUPP;	/* one subnet is all there is */
	to_ah(ah)->attr = *a->ah_attr;
	return 0;
}

static int vib_query_ah(struct ib_ah *ah, struct rdma_ah_attr *attr)
{
	*attr = to_ah(ah)->attr;
	return 0;
}

static int vib_modify_qp(struct ib_qp *qp, struct ib_qp_attr *a, int mask, struct ib_udata *u) { return 0; }
static int vib_destroy_ah(struct ib_ah *ah, u32 flags) { return 0; }
static int vib_alloc_pd(struct ib_pd *pd, struct ib_udata *u) { return 0; }
static int vib_dealloc_pd(struct ib_pd *pd, struct ib_udata *u) { return 0; }

/* ib_core passes an adapter over that has no memory regions. None are used. */
static struct ib_mr *vib_get_dma_mr(struct ib_pd *pd, int access) { return ERR_PTR(-EOPNOTSUPP); }
static struct ib_mr *vib_reg_user_mr(struct ib_pd *pd, u64 start, u64 length, u64 virt, int access,
				     struct ib_udata *u) { return ERR_PTR(-EOPNOTSUPP); }
static int vib_dereg_mr(struct ib_mr *mr, struct ib_udata *u) { return 0; }

static int vib_query_device(struct ib_device *d, struct ib_device_attr *a, struct ib_udata *u)
{
	*a = (struct ib_device_attr){
		.fw_ver = 1, .sys_image_guid = d->node_guid, .kernel_cap_flags = IBK_LOCAL_DMA_LKEY,
		.max_qp = 2, .max_qp_wr = 1 << 14, .max_send_sge = 4, .max_recv_sge = 1,
		.max_cq = 16, .max_cqe = 1 << 16, .max_pd = 16, .max_ah = 1 << 20, .max_pkeys = 1,
	};
	return 0;
}

static int vib_query_port(struct ib_device *d, u32 num, struct ib_port_attr *a)
{
	struct vib *v = to_vib(d);

	a->state = v->port.state;
	a->phys_state = v->port.phys_state;
	a->port_cap_flags = v->sm;
	a->lid = v->port.lid;
	a->lmc = v->port.lmc;
	a->sm_lid = v->port.sm_lid;
	a->sm_sl = v->port.sm_sl;
	a->active_width = IB_WIDTH_4X;
	a->active_speed = IB_SPEED_QDR;
	a->max_mtu = a->active_mtu = IB_MTU_4096;
	a->max_msg_sz = 1 << 20;
	a->max_vl_num = 1;
	a->subnet_timeout = 18;
	a->gid_tbl_len = 1;
	a->pkey_tbl_len = 1;
	return 0;
}

static int vib_query_gid(struct ib_device *d, u32 num, int index, union ib_gid *gid)
{
	gid->global.subnet_prefix = cpu_to_be64(to_vib(d)->port.prefix);
	gid->global.interface_id = cpu_to_be64(to_vib(d)->port.guid);
	return 0;
}

static int vib_query_pkey(struct ib_device *d, u32 num, u16 index, u16 *key)
{
	*key = 0xffff;
	return 0;
}

/* vib_modify_port is told where a subnet manager runs (issm). */
static int vib_modify_port(struct ib_device *d, u32 num, int mask, struct ib_port_modify *m)
{
	struct vib *v = to_vib(d);

	v->sm = (v->sm | (m->set_port_cap_mask & IB_PORT_SM)) & ~m->clr_port_cap_mask;
	return 0;
}

static int vib_get_port_immutable(struct ib_device *d, u32 num, struct ib_port_immutable *im)
{
	im->pkey_tbl_len = 1;
	im->gid_tbl_len = 1;
	im->core_cap_flags = RDMA_CORE_PORT_IBA_IB;
	im->max_mad_size = IB_MGMT_MAD_SIZE;
	return 0;
}

static void vib_dealloc(struct ib_device *d) { kfifo_free(&to_vib(d)->out); }

static const struct ib_device_ops vib_ops = {
	.owner = THIS_MODULE,
	.driver_id = RDMA_DRIVER_UNKNOWN,
	.uverbs_abi_ver = 1,
	.alloc_pd = vib_alloc_pd,
	.create_ah = vib_create_ah,
	.create_cq = vib_create_cq,
	.create_qp = vib_create_qp,
	.dealloc_driver = vib_dealloc,
	.dealloc_pd = vib_dealloc_pd,
	.dereg_mr = vib_dereg_mr,
	.destroy_ah = vib_destroy_ah,
	.destroy_cq = vib_destroy_cq,
	.destroy_qp = vib_destroy_qp,
	.get_dma_mr = vib_get_dma_mr,
	.get_port_immutable = vib_get_port_immutable,
	.modify_port = vib_modify_port,
	.modify_qp = vib_modify_qp,
	.poll_cq = vib_poll_cq,
	.post_recv = vib_post_recv,
	.post_send = vib_post_send,
	.query_ah = vib_query_ah,
	.query_device = vib_query_device,
	.query_gid = vib_query_gid,
	.query_pkey = vib_query_pkey,
	.query_port = vib_query_port,
	.reg_user_mr = vib_reg_user_mr,
	.req_notify_cq = vib_req_notify_cq,
	INIT_RDMA_OBJ_SIZE(ib_ah, vib_ah, ib),
	INIT_RDMA_OBJ_SIZE(ib_cq, vib_cq, ib),
	INIT_RDMA_OBJ_SIZE(ib_pd, vib_pd, ib),
	INIT_RDMA_OBJ_SIZE(ib_qp, vib_qp, ib),
};

/* plug makes an adapter with port p, whose reader sleeps on wait. */
static struct vib *plug(const struct vib_port *p, wait_queue_head_t *wait)
{
	struct vib *v = ib_alloc_device(vib, ib);
	int err;

	if (!v)
		return ERR_PTR(-ENOMEM);
	spin_lock_init(&v->lock);
	v->wait = wait;
	v->port = *p;
	v->ib.node_type = RDMA_NODE_IB_CA;
	v->ib.node_guid = cpu_to_be64(p->node_guid);
	v->ib.phys_port_cnt = 1;
	v->ib.num_comp_vectors = 1;
	ib_set_device_ops(&v->ib, &vib_ops);
	err = kfifo_alloc(&v->out, 1 << 12, GFP_KERNEL);
	if (!err)
		err = ib_register_device(&v->ib, "vib%d", NULL);
	if (err) {
		ib_dealloc_device(&v->ib);
		return ERR_PTR(err);
	}
	return v;
}

static void tell_of(struct vib *v, enum ib_event_type what)
{
	struct ib_event e = { .device = &v->ib, .event = what, .element.port_num = 1 };

	ib_dispatch_event(&e);
}

/* set makes p of the port, or an adapter with it. */
static int set(struct vib_file *f, struct vib_port *p)
{
	struct vib_port old;

	if (!f->vib) {
		struct vib *v = plug(p, &f->wait);

		if (IS_ERR(v))
			return PTR_ERR(v);
		f->vib = v;
		return 0;
	}
	old = f->vib->port;
	p->guid = old.guid;
	f->vib->port = *p;
	if (old.prefix != p->prefix)
		tell_of(f->vib, IB_EVENT_GID_CHANGE);
	if (old.lid != p->lid || old.lmc != p->lmc)
		tell_of(f->vib, IB_EVENT_LID_CHANGE);
	if (old.sm_lid != p->sm_lid || old.sm_sl != p->sm_sl)
		tell_of(f->vib, IB_EVENT_SM_CHANGE);
	if (old.state != p->state)
		tell_of(f->vib, p->state == IB_PORT_ACTIVE ? IB_EVENT_PORT_ACTIVE : IB_EVENT_PORT_ERR);
	return 0;
}

static int vib_open(struct inode *inode, struct file *file)
{
	struct vib_file *f = kzalloc(sizeof(*f), GFP_KERNEL);

	if (!f)
		return -ENOMEM;
	mutex_init(&f->mutex);
	init_waitqueue_head(&f->wait);
	file->private_data = f;
	return stream_open(inode, file);
}

static int vib_release(struct inode *inode, struct file *file)
{
	struct vib_file *f = file->private_data;

	if (f->vib)
		ib_unregister_device(&f->vib->ib);	/* dealloc_driver: this frees it too */
	kfree(f);
	return 0;
}

static ssize_t vib_write(struct file *file, const char __user *buf, size_t n, loff_t *pos)
{
	struct vib_file *f = file->private_data;
	union {
		u32 kind;
		struct vib_mad mad;
		struct vib_port port;
	} r;
	int err = -EINVAL;

	if (n < sizeof(r.kind) || n > sizeof(r))
		return -EINVAL;
	if (copy_from_user(&r, buf, n))
		return -EFAULT;
	mutex_lock(&f->mutex);
	if (r.kind == VIB_PORT && n == sizeof(r.port))
		err = set(f, &r.port);
	else if (r.kind == VIB_MAD && n == sizeof(r.mad) && f->vib)
		err = deliver(f->vib, &r.mad);
	mutex_unlock(&f->mutex);
	return err ? err : n;
}

/* vib_read gives one datagram. It never waits: poll does. */
static ssize_t vib_read(struct file *file, char __user *buf, size_t n, loff_t *pos)
{
	struct vib_file *f = file->private_data;
	struct vib_mad m;
	unsigned long flags;
	int got;

	if (n < sizeof(m) || !f->vib)
		return -EINVAL;
	spin_lock_irqsave(&f->vib->lock, flags);
	got = kfifo_get(&f->vib->out, &m);
	spin_unlock_irqrestore(&f->vib->lock, flags);
	if (!got)
		return -EAGAIN;
	return copy_to_user(buf, &m, sizeof(m)) ? -EFAULT : sizeof(m);
}

static __poll_t vib_poll(struct file *file, struct poll_table_struct *wait)
{
	struct vib_file *f = file->private_data;

	poll_wait(file, &f->wait, wait);
	return f->vib && !kfifo_is_empty(&f->vib->out) ? EPOLLIN | EPOLLOUT : EPOLLOUT;
}

static const struct file_operations vib_fops = {
	.owner = THIS_MODULE,
	.open = vib_open,
	.poll = vib_poll,
	.read = vib_read,
	.release = vib_release,
	.write = vib_write,
};

static struct miscdevice vib_misc = {
	.minor = MISC_DYNAMIC_MINOR,
	.name = "vib",
	.fops = &vib_fops,
};

module_misc_device(vib_misc);
MODULE_LICENSE("Dual BSD/GPL");
MODULE_DESCRIPTION("virtual InfiniBand adapters with a program as their fabric");
