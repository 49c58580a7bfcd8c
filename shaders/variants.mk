# One SPIR-V module a line: $(eval $(call variant,NAME,SOURCE,DEFINES))
FORMATS := f32 f16 bf16 q8_0 q4_0 q4_1 q5_0 q5_1 q2_0 pq2_0 tq2_0 q1_0 iq4_nl iq4_xs \
           mxfp4 nvfp4 q2_k q3_k q4_k q5_k q6_k

product = $(eval $(call variant,product_$(1)_$(2)_$(3),product,-DFORMAT_$(1) -DACT_$(2) -DEPILOGUE_$(3)))
$(foreach f,$(FORMATS),$(foreach a,float int8,$(foreach e,store residual swiglu,\
    $(call product,$(f),$(a),$(e)))))
experts = $(eval $(call variant,experts_$(1)_$(2)_$(3),product,-DFORMAT_$(1) -DACT_$(2) -DEPILOGUE_$(3) -DEXPERTS))
$(foreach f,$(FORMATS),$(foreach a,float int8,$(foreach e,residual swiglu,\
    $(call experts,$(f),$(a),$(e)))))
tile = $(eval $(call variant,tile_$(1)_$(2)_$(3),tile,-DFORMAT_$(2) -DEPILOGUE_$(3) $(4)))
$(foreach f,$(FORMATS),$(foreach e,store residual swiglu,\
    $(call tile,plain,$(f),$(e)) $(call tile,matrix,$(f),$(e),-DMATRIX)))
expert_tile = $(eval $(call variant,tile_$(1)_experts_$(2)_$(3),tile,-DFORMAT_$(2) -DEPILOGUE_$(3) -DEXPERTS $(4)))
$(foreach f,$(FORMATS),$(foreach e,store swiglu,\
    $(call expert_tile,plain,$(f),$(e)) $(call expert_tile,matrix,$(f),$(e),-DMATRIX)))
$(eval $(call variant,group,group,))
$(eval $(call variant,combine,combine,))
$(eval $(call variant,read,read,))
$(eval $(call variant,to_half,to_half,))
$(eval $(call variant,router,product,-DFORMAT_f32 -DACT_stream -DEPILOGUE_store))
$(eval $(call variant,select,select,))
$(eval $(call variant,rotate,rotate,))
$(eval $(call variant,unrotate,rotate,-DUNROTATE))
$(foreach f,$(FORMATS),$(eval $(call variant,embed_$(f),embed,-DFORMAT_$(f))))

$(eval $(call variant,delta,delta,))
$(eval $(call variant,delta_wide,delta,-DWIDE_LOADS))
$(foreach s,conv solve scan emit,$(eval $(call variant,delta_$(s),delta_$(s),)))
$(eval $(call variant,qk_f16,qk,-DKV_F16))
$(eval $(call variant,qk_f32,qk,-DKV_F32))
$(eval $(call variant,attend_f16,attend,-DKV_F16))
$(eval $(call variant,attend_f32,attend,-DKV_F32))
$(eval $(call variant,merge,merge,))
$(eval $(call variant,sample,sample,))
